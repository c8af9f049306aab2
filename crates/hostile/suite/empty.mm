$( Nothing is declared, and nothing is wrong. $)
