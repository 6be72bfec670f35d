#!/bin/sh
# A whole training cycle of chess: play, learn, save, rate; then the games as PGN. Settings by environment, for example
#     EPISODES=200 GRAD_ACCUM_STEPS=4 NO_AMP=1 scripts/demo/run_training_cycle.sh
# What is not set is as in `alea train chess --preset demo`. Further arguments go to `alea train` as they are. Runs are kept in
# $ALEA_RUNS, or in runs/ here; the games of self-play are games.pgn in the run's folder.
set -eu

flags=""
give() { # NAME VALUE: a flag, where there is a value
    [ -z "$2" ] || flags="$flags $1 $2"
}
switch() { # VALUE YES NO: the one flag for 1, true, yes; the other for 0, false, no; neither for nothing
    case "$1" in
    1 | true | yes) flags="$flags $2" ;;
    0 | false | no) flags="$flags $3" ;;
    "") ;;
    *)
        echo "run_training_cycle.sh: $1 is neither 1 nor 0 (for $2)" >&2
        exit 2
        ;;
    esac
}

give --episodes "${EPISODES:-}"
give --batch-size "${BATCH_SIZE:-}"
give --checkpoint-interval "${CHECKPOINT_INTERVAL:-}"
give --exploration-rate "${EXPLORATION_RATE:-}"
give --seed "${SEED:-}"
give --grad-accum-steps "${GRAD_ACCUM_STEPS:-}"
give --learning-rate "${LEARNING_RATE:-}"
give --l2 "${L2:-}"
give --mcts-simulations "${MCTS_SIMULATIONS:-}"
give --mcts-cpuct "${MCTS_CPUCT:-}"
give --producer-workers "${PRODUCER_WORKERS:-}"
give --producer-queue-size "${PRODUCER_QUEUE_SIZE:-}"
give --producer-device "${PRODUCER_DEVICE:-}"
switch "${NO_AMP:-}" --no-amp --amp
name="${JOB_ID:-chess-$(date +%Y%m%d-%H%M%S)}"

# shellcheck disable=SC2086 # flags are words of ours
"${ALEA:-alea}" train chess --preset demo --name "$name" $flags "$@"
folder="${ALEA_RUNS:-runs}/$name"
[ ! -d "$folder" ] || "${ALEA:-alea}" runs pgn "$name" --out "$folder/games.pgn" --force
