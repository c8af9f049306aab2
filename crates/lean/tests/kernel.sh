# A small kernel for tests: it accepts a certificate unless the last theorem is its own proof or
# an axiom was not permitted. It starts no further program, as it may not.
IFS= read -r settings < "$1"
mapfile -t lines
declared=0
for line in "${lines[@]}"; do
    [[ $line == '{"axiom"'* ]] && declared=$((declared + 1))
done
permitted=${settings#*'"permitted_axioms":['}
permitted=${permitted%%']'*}
IFS=, read -ra permitted <<< "$permitted"
if ((declared > ${#permitted[@]})); then
    echo 'Error: unpermitted axiom' >&2
    exit 1
fi
if [[ ${lines[-1]} =~ '"type":'([0-9]+),'"value":'([0-9]+) ]] &&
    ((BASH_REMATCH[1] == BASH_REMATCH[2])); then
    echo "thread 'main' panicked at src/tc.rs:1" >&2
    exit 101
fi
echo "Checked ${#lines[@]} declarations with no errors"
