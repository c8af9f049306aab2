$( A little propositional logic, written for the tests of the Python package. $)
$c ( ) -> wff |- $.
$v ph ps ch th $.
wph $f wff ph $.
wps $f wff ps $.
wch $f wff ch $.
wth $f wff th $.
wi $a wff ( ph -> ps ) $.
${
  mp.1 $e |- ph $.
  mp.2 $e |- ( ph -> ps ) $.
  ax-mp $a |- ps $.
$}
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
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
  mpi.1 $e |- ps $.
  mpi.2 $e |- ( ph -> ( ps -> ch ) ) $.
  mpi $p |- ( ph -> ch ) $= wph wps wch wps wph mpi.1 a1i mpi.2 mpd $.
$}
${
  pm2.43i.1 $e |- ( ph -> ( ph -> ps ) ) $.
  pm2.43i $p |- ( ph -> ps ) $= wph wph wps wph id pm2.43i.1 mpd $.
$}
${
  a1d.1 $e |- ( ph -> ps ) $.
  a1d $p |- ( ph -> ( ch -> ps ) ) $= wph wps wch wps wi a1d.1 wps wch ax-1 syl $.
$}
${
  syl3.1 $e |- ( ph -> ps ) $.
  syl3.2 $e |- ( ps -> ch ) $.
  syl3.3 $e |- ( ch -> th ) $.
  syl3 $p |- ( ph -> th ) $= wph wch wth wph wps wch syl3.1 syl3.2 syl syl3.3 syl $.
$}
idd $p |- ( ph -> ( ps -> ps ) ) $= wps wps wi wph wps id a1i $.
