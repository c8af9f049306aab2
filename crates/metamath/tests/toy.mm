$( A toy of propositional logic with a little predicate logic, written for the tests of this crate. It has hypotheses, variables
   that only the hypotheses mention, distinct-variable conditions, dummy variables, a local declaration, a syntax
   theorem, a proof in the normal format, a theorem that is its own hypothesis, and two statements that differ in names only. $)
$c ( ) -> -. A. = wff setvar |- $.
$v ph ps ch th x y z $.
wph $f wff ph $.
wps $f wff ps $.
wch $f wff ch $.
wth $f wff th $.
wn $a wff -. ph $.
wi $a wff ( ph -> ps ) $.
${
  $( The same variable again below, under another label. $)
  vx.wal $f setvar x $.
  wal $a wff A. x ph $.
  ax-all $a |- ( A. x ph -> ph ) $.
  $( It shares a declaration that ends here with the axiom it uses. $)
  allid $p |- ( A. x ph -> ph ) $= wph vx.wal ax-all $.
$}
vx $f setvar x $.
vy $f setvar y $.
vz $f setvar z $.
weq $a wff x = y $.
$( Syntax that is proved, not assumed. $)
wnn $p wff -. -. ph $= wph wn wn $.
${
  mp.1 $e |- ph $.
  mp.2 $e |- ( ph -> ps ) $.
  ax-mp $a |- ps $.
$}
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
ax-3 $a |- ( ( -. ph -> -. ps ) -> ( ps -> ph ) ) $.
${
  gen.1 $e |- ph $.
  ax-gen $a |- A. x ph $.
$}
${
  $d x ph $.
  ax-5 $a |- ( ph -> A. x ph ) $.
$}
$( Some variable equals any other, said without an existential. $)
${
  $d x y $.
  ax-6 $a |- -. A. x -. x = y $.
$}
${
  idi.1 $e |- ph $.
  idi $p |- ph $= idi.1 $.
$}
${
  a1i.1 $e |- ph $.
  a1i $p |- ( ps -> ph ) $= wph wps wph wi a1i.1 wph wps ax-1 ax-mp $.
$}
${
  a2i.1 $e |- ( ph -> ( ps -> ch ) ) $.
  a2i $p |- ( ( ph -> ps ) -> ( ph -> ch ) ) $= wph wps wch wi wi wph wps wi wph wch wi wi a2i.1 wph wps wch ax-2 ax-mp $.
$}
${
  mpd.1 $e |- ( ph -> ps ) $.
  mpd.2 $e |- ( ph -> ( ps -> ch ) ) $.
  mpd $p |- ( ph -> ch ) $= wph wps wi wph wch wi mpd.1 wph wps wch mpd.2 a2i ax-mp $.
$}
${
  syl.1 $e |- ( ph -> ps ) $.
  syl.2 $e |- ( ps -> ch ) $.
  syl $p |- ( ph -> ch ) $= wph wps wch syl.1 wps wch wi wph syl.2 a1i mpd $.
$}
id $p |- ( ph -> ph ) $= wph wph wph wi wph wph wph ax-1 wph wph wph wi ax-1 mpd $.
${
  a1d.1 $e |- ( ph -> ps ) $.
  a1d $p |- ( ph -> ( ch -> ps ) ) $=
    ( wi ax-1 syl ) ABCBEDBCFG $.
$}
${
  mp2.1 $e |- ph $.
  mp2.2 $e |- ps $.
  mp2.3 $e |- ( ph -> ( ps -> ch ) ) $.
  mp2 $p |- ch $=
    ( wi ax-mp ) BCEABCGDFHH $.
$}
${
  mpi.1 $e |- ps $.
  mpi.2 $e |- ( ph -> ( ps -> ch ) ) $.
  mpi $p |- ( ph -> ch ) $=
    ( a1i mpd ) ABCBADFEG $.
$}
${
  com12.1 $e |- ( ph -> ( ps -> ch ) ) $.
  com12 $p |- ( ps -> ( ph -> ch ) ) $=
    ( wi ax-1 a2i syl ) BABEACEBAFABCDGH $.
$}
${
  imim2i.1 $e |- ( ph -> ps ) $.
  imim2i $p |- ( ( ch -> ph ) -> ( ch -> ps ) ) $=
    ( wi a1i a2i ) CABABECDFG $.
$}
${
  pm2.27 $p |- ( ph -> ( ( ph -> ps ) -> ps ) ) $=
    ( wi id com12 ) ABCZABFDE $.
$}
${
  imim1i.1 $e |- ( ph -> ps ) $.
  imim1i $p |- ( ( ps -> ch ) -> ( ph -> ch ) ) $=
    ( wi pm2.27 syl com12 ) ABCEZCABICEDBCFGH $.
$}
${
  imim2 $p |- ( ( ph -> ps ) -> ( ( ch -> ph ) -> ( ch -> ps ) ) ) $=
    ( wi ax-1 ax-2 syl ) ABDZCHDCADCBDDHCECABFG $.
$}
${
  syld.1 $e |- ( ph -> ( ps -> ch ) ) $.
  syld.2 $e |- ( ph -> ( ch -> th ) ) $.
  syld $p |- ( ph -> ( ps -> th ) ) $=
    ( wi imim2 syl mpd ) ABCGZBDGZEACDGKLGFCDBHIJ $.
$}
${
  con4i.1 $e |- ( -. ph -> -. ps ) $.
  con4i $p |- ( ps -> ph ) $=
    ( wn wi ax-3 ax-mp ) ADBDEBAECABFG $.
$}
${
  pm2.21 $p |- ( -. ph -> ( ph -> ps ) ) $=
    ( wn wi ax-1 ax-3 syl ) ACZBCZHDABDHIEBAFG $.
$}
${
  pm2.21i.1 $e |- -. ph $.
  pm2.21i $p |- ( ph -> ps ) $=
    ( wn wi pm2.21 ax-mp ) ADABECABFG $.
$}
${
  pm2.24 $p |- ( ph -> ( -. ph -> ps ) ) $=
    ( wn pm2.21 com12 ) ACABABDE $.
$}
${
  pm2.18 $p |- ( ( -. ph -> ph ) -> ph ) $=
    ( wn wi id pm2.21 a2i ax-3 syl mpd ) ABZACZKAKDKJKBZCKACJALALEFAKGHI $.
$}
${
  notnotr $p |- ( -. -. ph -> ph ) $=
    ( wn wi pm2.21 pm2.18 syl ) ABZBGACAGADAEF $.
$}
${
  notnot $p |- ( ph -> -. -. ph ) $=
    ( wn notnotr con4i ) ABZBAECD $.
$}
${
  con3i.1 $e |- ( ph -> ps ) $.
  con3i $p |- ( -. ps -> -. ph ) $=
    ( wn notnotr notnot syl con4i ) ADZBDZIDAJDZAEABKCBFGGH $.
$}
${
  gen2.1 $e |- ph $.
  gen2 $p |- A. x A. y ph $=
    ( wal ax-gen ) ACEBACDFF $.
$}
${
  $d x ps $.
  ax5i.1 $e |- ( ph -> ps ) $.
  ax5i $p |- ( ph -> A. x ps ) $=
    ( wal ax-5 syl ) ABBCEDBCFG $.
$}
${
  $d x y $.
  a1eq $p |- ( ph -> -. A. x -. x = y ) $=
    ( weq wn wal ax-6 a1i ) BCDEBFEABCGH $.
$}
${
  $d y z $.
  ${
  $d y ph $.
  $d y ps $.
  $d z ph $.
  $d z ps $.
  $d z y $.
  dummies $p |- ( ph -> ( ps -> ps ) ) $=
    ( vy vz weq wn wal wi ax-6 id a1i ax-1 syl ax-mp )
    CDEFCGFZABBHZHZCDIOPQPOBJKPALMN $.
  $}
$}
${
  syl2.1 $e |- ( ch -> th ) $.
  syl2.2 $e |- ( ph -> ch ) $.
  syl2 $p |- ( ph -> th ) $=
    ( syl ) ABCEDF $.
$}
${
  3syl.1 $e |- ( ph -> ps ) $.
  3syl.2 $e |- ( ps -> ch ) $.
  3syl.3 $e |- ( ch -> th ) $.
  3syl $p |- ( ph -> th ) $=
    ( syl ) ACDABCEFHGH $.
$}
${
  pm2.43i.1 $e |- ( ph -> ( ph -> ps ) ) $.
  pm2.43i $p |- ( ph -> ps ) $=
    ( id mpd ) AABADCE $.
$}
${
  shared $p |- ( ph -> ( ch -> ch ) ) $=
    ( wi id ax-1 a1i mp2 ) BBCZHAHCZBDZJHICHHAEFG $.
$}
