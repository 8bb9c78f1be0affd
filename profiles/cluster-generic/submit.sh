#!/usr/bin/env bash
# Submit a job to PBS and print its id. Usage: submit.sh RULE THREADS MEGABYTES MINUTES SCRIPT
set -euo pipefail
qsub -N "$1" -l "select=1:ncpus=$2:mem=$3mb" -l "walltime=$(($4 / 60)):$(($4 % 60)):00" \
    -j oe -o /dev/null "$5"
