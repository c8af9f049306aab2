// A prover that is wholly in somebody's hands. It runs no Lean: it says whatever the mode it is
// started in says, and hands over the terms of a proof of True, called `t`.
'use strict';
const { boot: mode, runtime } = JSON.parse(process.argv.at(-1));

// Terms by their place in a list, which a header `-- 17` asks for: contexts and states have that
// number, and so has the goal.
if (mode === 'terms of a list') {
  const all = JSON.parse(require('fs').readFileSync(`${runtime}/terms.json`, 'utf8'));
  process.stdout.write(JSON.stringify({ protocol: 2, ready: true, lean: 'none' }) + '\n');
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, cmd, text, ctx, state } = JSON.parse(line);
    const at = cmd === 'header' ? Number(text.replace('--', '')) : cmd === 'start' ? ctx : state;
    process.stdout.write(JSON.stringify({
      id, ok: true, ctx: at, state: at, goals: cmd === 'start' ? `goal ${at}` : '',
      done: cmd === 'tac', terms: cmd === 'finish' ? all[at] : '', axioms: [], hypotheses: [],
      library_axioms_visible: true, missing: [], taken: [], stated: [],
    }) + '\n');
  });
  return;
}

const lines = (...records) => records.map((r) => JSON.stringify(r) + '\n').join('');
const names = [
  { str: { pre: 0, str: 'True' }, in: 1 },
  { str: { pre: 1, str: 'intro' }, in: 2 },
  { str: { pre: 0, str: 't' }, in: 3 },
  { const: { name: 1, us: [] }, ie: 0 },
  { const: { name: 2, us: [] }, ie: 1 },
];
const theorem = { thm: { name: 3, levelParams: [], type: 0, value: 1, all: [3] } };
const proof = lines(...names, theorem);
const axiom = lines(...names, { axiom: { name: 3, levelParams: [], type: 0, isUnsafe: false } });

const terms = {
  nothing: '',
  'a verdict': lines({ ok: true, verdict: 'proved', axioms: [] }),
  'an axiom': axiom,
  'too much': ' '.repeat(65 << 20),
}[mode] ?? proof;

const answer = (id, cmd) => JSON.stringify({
  id, ok: true, ctx: 1, state: 1, goals: '', done: true, axioms: [],
  terms: mode === 'too much' && cmd !== 'finish' ? '' : terms, hypotheses: [],
  library_axioms_visible: true, missing: [], taken: [], stated: [],
});
const refusal = (id) => JSON.stringify({ id, ok: false, kind: 'elaboration', error: 'no' });
const grow = () => { globalThis.held = Buffer.alloc(900 << 20, 1); };
const say = (text) => process.stdout.write(text + '\n');

say(JSON.stringify({ protocol: 2, ready: true, lean: 'none' }));
let ahead = false;
let opened = 0;
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, cmd } = JSON.parse(line);
  const [nonce, asked] = id.split('-');
  opened += cmd === 'start';
  switch (mode) {
    case 'answers in advance': {
      // Everything that could be asked later, before it is.
      const first = Number(asked);
      for (let n = first; !ahead && n < first + 50; n += 1) say(answer(`${nonce}-${n}`));
      ahead = true;
      break;
    }
    case 'answers twice':
      say(answer(id));
      say(answer(id));
      break;
    case 'answers to another request':
      say(answer(`${nonce}-${Number(asked) - 1}`));
      break;
    case 'answers to another process':
      say(answer(`0123456789abcdef-${asked}`));
      break;
    case 'refuses all but the first':
      say(opened > 1 ? refusal(id) : answer(id));
      break;
    case 'is full of two theorems':
      if (cmd === 'tac' && opened > 1) grow();
      else say(answer(id, cmd));
      break;
    case 'is full of a tactic':
      if (cmd === 'tac') grow();
      else say(answer(id, cmd));
      break;
    case 'noise':
      process.stdout.write(Buffer.from([0, 255, 254, 10, 0, 10]));
      say('x'.repeat(1 << 20));
      say('['.repeat(100000));
      say(`[${answer(id)}]`);
      say(`${answer(id)}${answer(id)}`);
      say(answer(id));
      break;
    default:
      say(answer(id, cmd));
  }
});
