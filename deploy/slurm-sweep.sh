#!/usr/bin/env bash
# A sweep as a Slurm array: a shard is a task, and the last step joins them.
#
#   sbatch --array=1-64%16 deploy/slurm-sweep.sh estimate llama-3.1-70b --on 8xh200 --over concurrency=1..512 --over tp=1,2,4,8
#   sbatch --dependency=afterok:JOB deploy/slurm-sweep.sh merge
#
# PARTS is a folder that every node sees (parts/ unless set), ROWS the file that comes out (rows.csv). A shard that is there is not
# worked again, so a task that was requeued, or the whole job sent again, costs only what is missing.
#SBATCH --job-name=rackmath-sweep
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=01:00:00
#SBATCH --requeue
set -euo pipefail
rackmath=${RACKMATH:-rackmath}
parts=${PARTS:-parts}
rows=${ROWS:-rows.csv}
if [ "${1:-}" = merge ]; then
  exec "$rackmath" merge "$parts" -o "$rows"
fi
: "${SLURM_ARRAY_TASK_COUNT:?expected an array: sbatch --array=1-64 $0 QUESTION ...}"
exec "$rackmath" sweep "$@" --format "${rows##*.}" --shard "auto/$SLURM_ARRAY_TASK_COUNT" -o "$parts/"
