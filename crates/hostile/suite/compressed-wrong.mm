$( A logic of implication: enough for a proof to be right or wrong in. $)
$c ( ) -> wff |- $.
$v ph ps ch $.
wph $f wff ph $.
wps $f wff ps $.
wch $f wff ch $.
wi $a wff ( ph -> ps ) $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
${
  mp.1 $e |- ph $.
  mp.2 $e |- ( ph -> ps ) $.
  ax-mp $a |- ps $.
$}
x $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) BAC $.
