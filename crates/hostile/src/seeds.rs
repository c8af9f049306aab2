//! Valid files to mutate: small, and made here, so that they are of today's formats. What once
//! broke something is kept beside them, in `seeds/TARGET/`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use catamount_model::{Adapter, Config, Cpu, LoraConfig, Memory, Model, Tokenizer, pieces};
use catamount_model::{save, save_adapter};
use catamount_search::Stream;
use catamount_traces::leandojo::Entry;
use catamount_traces::{Step, Theorem, Trace, jsonl, leandojo, parquet};

/// The inputs that are kept for a target.
pub fn kept(target: &str) -> Result<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    paths.iter().map(|path| Ok(std::fs::read(path)?)).collect()
}

/// Three traces.
pub fn traces() -> Vec<Trace> {
    let step = |state: &str, tactic: &str| Step {
        state: state.into(),
        tactic: tactic.into(),
        ..Step::default()
    };
    let theorem = |name: &str, statement: &str| Theorem {
        name: name.into(),
        statement: statement.into(),
        ..Theorem::default()
    };
    vec![
        Trace {
            theorem: theorem("a1d", "$e ( ph -> ps ) $p ( ph -> ( ch -> ps ) )"),
            steps: vec![
                step("$e ( ph -> ps ) $p ( ph -> ( ch -> ps ) )", "syl $ ps ps"),
                step("$e ( ph -> ps ) $p ( ps -> ( ch -> ps ) )", "ax-1"),
            ],
        },
        Trace {
            theorem: Theorem {
                file: Some("A/B.lean".into()),
                line: Some(7),
                url: Some("https://example.org/r".into()),
                commit: Some("c0ffee".into()),
                ..theorem("A.b", "theorem A.b : 1 = 1")
            },
            steps: vec![step("⊢ 1 = 1", "rfl")],
        },
        Trace { theorem: theorem("open", "$p ph"), steps: Vec::new() },
    ]
}

/// Traces in each of their formats: JSON lines, LeanDojo's JSON, Parquet in two shapes.
pub fn trace_files(folder: &Path) -> Result<[Vec<Vec<u8>>; 3]> {
    let traces = traces();
    let path = |name: &str| folder.join(name);
    jsonl::write(&path("t.jsonl"), &traces)?;
    let entries: Vec<Entry> = traces.iter().map(Entry::new).collect();
    leandojo::write(&path("t.json"), &entries)?;
    // Parquet has no place for a theorem without a trace.
    let traces: Vec<Trace> = traces.into_iter().filter(|t| !t.steps.is_empty()).collect();
    parquet::write(&path("nested.parquet"), &traces, parquet::Shape::Nested)?;
    parquet::write(&path("flat.parquet"), &traces, parquet::Shape::Flat)?;
    let read = |name: &str| std::fs::read(path(name));
    Ok([
        vec![read("t.jsonl")?],
        vec![read("t.json")?],
        vec![read("nested.parquet")?, read("flat.parquet")?],
    ])
}

/// A model of a few thousand numbers, with its tokenizer and an adapter, written to a folder.
pub fn model(folder: &Path) -> Result<Model<Cpu>> {
    let texts = ["|- ( ph -> ps )", "syl ax-1 $ ps"];
    let tokenizer = Tokenizer::train_symbols(texts.iter(), 270)?;
    let config = Config::small(tokenizer.vocab(), 8, 2, 64);
    let model = Model::init(Arc::new(Cpu), config, Stream::new(1))?;
    save(&model, &tokenizer, folder)?;
    let lora = LoraConfig { rank: 2, ..LoraConfig::default() };
    let adapter = Adapter::new(&Cpu, &model.config, lora, false, Stream::new(2))?;
    save_adapter(&Cpu, &adapter, "base", folder)?;
    Ok(model)
}

/// The model as a GGUF file of llama's.
pub fn gguf(model: &Model<Cpu>) -> Result<Vec<u8>> {
    let (mut head, mut data) = (Vec::new(), Vec::new());
    let text = |out: &mut Vec<u8>, text: &str| {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    };
    let c = &model.config;
    let mut meta: Vec<u8> = Vec::new();
    let mut count = 0u64;
    let mut put = |key: &str, kind: u32, value: &[u8]| {
        count += 1;
        text(&mut meta, key);
        meta.extend(kind.to_le_bytes());
        meta.extend(value);
    };
    let named = |name: &str| {
        let mut out = Vec::new();
        text(&mut out, name);
        out
    };
    put("general.architecture", 8, &named("llama"));
    for (key, value) in [
        ("llama.block_count", c.layers),
        ("llama.embedding_length", c.hidden),
        ("llama.feed_forward_length", c.intermediate),
        ("llama.attention.head_count", c.heads.heads),
        ("llama.attention.head_count_kv", c.heads.kv_heads),
        ("llama.attention.key_length", c.heads.dim),
        ("llama.context_length", c.positions),
    ] {
        put(key, 4, &(value as u32).to_le_bytes());
    }
    put("llama.attention.layer_norm_rms_epsilon", 6, &c.norm_eps.to_le_bytes());
    put("tokenizer.ggml.model", 8, &named("gpt2"));
    let mut tokens = vec!["<|endoftext|>".to_owned()];
    tokens.extend(('!'..='~').map(String::from));
    tokens.push("ph".into());
    let list = |items: &[String]| {
        let mut out = 8u32.to_le_bytes().to_vec();
        out.extend((items.len() as u64).to_le_bytes());
        items.iter().for_each(|item| text(&mut out, item));
        out
    };
    put("tokenizer.ggml.tokens", 9, &list(&tokens));
    put("tokenizer.ggml.merges", 9, &list(&["p h".to_owned()]));
    put("tokenizer.ggml.eos_token_id", 4, &0u32.to_le_bytes());
    let pieces = pieces(c);
    head.extend(b"GGUF");
    head.extend(3u32.to_le_bytes());
    head.extend((pieces.len() as u64).to_le_bytes());
    head.extend(count.to_le_bytes());
    head.extend(meta);
    for piece in pieces {
        let parameter = model.base().find(|p| p.name == piece.parameter).context("a parameter")?;
        let mut numbers = vec![0.0; piece.shape.iter().product()];
        Cpu.download(&parameter.value, piece.offset, &mut numbers)?;
        text(&mut head, &piece.gguf);
        head.extend((piece.shape.len() as u32).to_le_bytes());
        piece.shape.iter().rev().for_each(|size| head.extend((*size as u64).to_le_bytes()));
        head.extend(0u32.to_le_bytes());
        head.extend((data.len() as u64).to_le_bytes());
        data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        data.resize(data.len().next_multiple_of(32), 0);
    }
    head.resize(head.len().next_multiple_of(32), 0);
    head.extend(data);
    Ok(head)
}
