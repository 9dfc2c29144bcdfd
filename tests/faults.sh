#!/bin/sh
# Faults done to the command: every signal to every process, calls that fail, one number after the
# other, then trials drawn by number. What was tried stays in DIRECTORY; called again, it goes on
# there, and ends with the table.
# Usage: sh tests/faults.sh PATH-TO-FAULTS DIRECTORY; exit status 1 when anything went wrong.
set -u

faults=$1
keep=$2
status=0

# on COMMAND…: goes on unless it was interrupted or could not be begun.
on() {
    "$@" || case $? in
    1) status=1 ;;
    *) exit $? ;;
    esac
}

on "$faults" signals --for 900 --keep "$keep"
on "$faults" sweep --step 10 --for 700 --keep "$keep"
on "$faults" sweep --step 25 --onwards --for 300 --keep "$keep"
on "$faults" random --count 10000 --for 1700 --keep "$keep"
exit "$status"
