$c wff |- $.
$v ph $.
x $a |- ph $.
