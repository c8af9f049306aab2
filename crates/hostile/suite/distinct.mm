$c set |- R $.
$v x y $.
vx $f set x $.
vy $f set y $.
${ $d x y $. ax $a |- R x y $. $}
${ $d x y $. th $p |- R y x $= vy vx ax $. $}
