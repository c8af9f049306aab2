$c set |- R $.
$v x y $.
vx $f set x $.
vy $f set y $.
$d x x $.
