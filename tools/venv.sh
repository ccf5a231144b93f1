#!/bin/sh
# Make .venv ready, once: sh tools/venv.sh demo|dev
#
# Installs the checkout into .venv (editable) with the extras that are asked for. What was installed is noted in
# .venv/.callsheet-<what>; nothing is done again until setup.cfg, pyproject.toml or constraints.txt change. The note
# is written last, so a half-finished install is finished by the next call. PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/.."

what=${1:?demo or dev}
case $what in
    demo) extras=embedded,worker ;;
    dev) extras=embedded,worker,s3,dev ;;
    *) echo "tools/venv.sh: demo or dev, not '$what'" >&2; exit 2 ;;
esac
used="import av, celery.bin.celery, diffusers, flower.command
diffusers.LTXPipeline, diffusers.WanPipeline"
venv=.venv
here=$(pwd -P)
wanted=$(cksum setup.cfg pyproject.toml constraints.txt)

say() { echo "callsheet: $*" >&2; }

installed() { [ -x $venv/bin/python ] && [ "$(cat "$venv/.callsheet-$1" 2>/dev/null)" = "$wanted" ]; }

at_home() { [ ! -f $venv/.callsheet-home ] || [ "$(cat $venv/.callsheet-home)" = "$here" ]; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

can_make_venvs() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

find_python() {
    lame=
    for python in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
        new_enough "$python" || continue
        if can_make_venvs "$python"; then
            echo "$python"
            return
        fi
        lame=${lame:-$python}
    done
    if [ -n "$lame" ]; then
        version=$("$lame" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        say "$lame cannot make virtual environments (no venv or ensurepip). On Debian and Ubuntu:" \
            "apt-get install python$version-venv; then run make again."
    else
        say "no Python 3.11 or later found (tried: ${PYTHON:-python3.13 python3.12 python3.11 python3 python})." \
            "Install one, or name it: make PYTHON=/path/to/python3 ..."
    fi
    return 1
}

make_venv() {
    python=$(find_python) || exit 1
    say "making $venv with $python ($("$python" -V))"
    "$python" -m venv --clear $venv
    echo "$here" >$venv/.callsheet-home
}

# Importing once what the stack imports compiles it, also where PYTHONDONTWRITEBYTECODE would leave every process
# of the stack to compile it anew (20 s each).
compile_used() {
    env -u PYTHONDONTWRITEBYTECODE $venv/bin/python -c "$used" || {
        say "what was installed cannot be imported (the reason is above). Remove $venv and run make again."
        exit 1
    }
}

if at_home && { installed "$what" || installed dev; }; then
    exit 0
fi
# A .venv that was moved, or whose Python or pip is gone, cannot be used: its scripts name their old place.
if ! at_home || ! new_enough $venv/bin/python || ! $venv/bin/python -m pip --version >/dev/null 2>&1; then
    make_venv
fi
say "installing callsheet[$extras] into $venv; the first time this takes a minute or more ..."
# --no-compile: most of torch and transformers is never imported, and compiling all of it doubles the time.
if ! $venv/bin/python -m pip install -qq --no-compile --disable-pip-version-check \
    -e ".[$extras]" -c constraints.txt; then
    say "the installation failed (pip's reason is above); nothing is lost: fix it and run make again."
    exit 1
fi
compile_used
echo "$wanted" >"$venv/.callsheet-$what"
