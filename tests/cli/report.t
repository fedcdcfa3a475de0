# SPDX-License-Identifier: Apache-2.0

# triax report

  $ . "$TESTDIR/setup"
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > pipeline = 2
  > [train]
  > steps = 6
  > [eval]
  > every = 3
  > batches = 1
  > [data]
  > validation = "text"
  > [log]
  > timeline = 2
  > END
  $ triax train run.toml > /dev/null 2>&1
  $ triax train run.toml --set run.dir=runs/other --set batch.global=8 --set train.stop_at=4 --set log.timeline=0 > /dev/null 2>&1

Times, and numbers that depend on the machine, are left out:

  $ timeless() {
  >   sed -E -e 's/ +[0-9.]+( k)? +[0-9.]+ +[0-9.]+ %/ {times}/' -e 's/\b[0-9]\.[0-9]{4}\b/{loss}/g' -e 's/ +[0-9.]+ [kM]B$/ {memory}/'
  > }

## One run, and several

  $ triax report runs/run | timeless
    run       state     step  of    loss  held-out  checkpoint
    runs/run  complete     6   6  {loss}    {loss}           6
  
  of rank 0: medians over the recorded steps, bytes sent in a step on each axis, planned memory:
    run       tokens/s  step ms  bubble  pipeline  memory
    runs/run {times}   57.5 kB {memory}
  $ triax report runs/run/ runs/other | timeless
    run         state         step  of    loss  held-out  checkpoint
    runs/run    complete         6   6  {loss}    {loss}           6
    runs/other  not complete     4   6  {loss}    {loss}           4
  
  of rank 0: medians over the recorded steps, bytes sent in a step on each axis, planned memory:
    run         tokens/s  step ms  bubble  pipeline   memory
    runs/run {times}   57.5 kB {memory}
    runs/other {times}   73.9 kB {memory}
  
  keys that differ:
    key            runs/run  runs/other
    batch.global          4           8
    train.stop_at         0           4
    log.timeline          2           0
  $ triax report runs/run --json | grep -oE '"(state|last_step|steps|records|skipped|eval_step|checkpoint|failure|comm|notes|differences)":[^,]*'
  "state":"complete"
  "last_step":6
  "steps":6
  "records":6
  "skipped":0
  "eval_step":6
  "checkpoint":6
  "failure":null
  "comm":{"pipeline":{"plugin":"comm-local"
  "notes":[]}]
  "differences":[]}
  $ triax report runs/run runs/other --json | grep -oE '"differences".*'
  "differences":[{"key":"batch.global","values":["4","8"]},{"key":"train.stop_at","values":["0","4"]},{"key":"log.timeline","values":["2","0"]}]}

## Pages

  $ triax report runs/run --html run.html | tail -n 1
  page: run.html
  $ python3 "$SOURCE/tests/page/check-page" run.html
  6 sections, 12 figures, 4 tables
  $ triax report runs/run runs/other --html runs.html > /dev/null
  $ python3 "$SOURCE/tests/page/check-page" runs.html
  6 sections, 12 figures, 4 tables
  $ grep -c 'class="schedule"' runs.html
  1
  $ grep -o 'aria-label="Loss over step[^0-9]*' runs.html
  aria-label="Loss over step: run: first 

Names from outside are text:

  $ bad=$(printf 'runs/<script>alert(1)<\\script>"&\033[31m\u202e')
  $ cp -r runs/run "$bad"
  $ triax report "$bad" runs/run --html bad.html | head -n 3 | timeless
    run                                               state     step  of    loss  held-out  checkpoint
    runs/<script>alert(1)<\script>"&\u001B[31m\u202E  complete     6   6  {loss}    {loss}           6
    runs/run                                          complete     6   6  {loss}    {loss}           6
  $ python3 "$SOURCE/tests/page/check-page" bad.html
  6 sections, 14 figures, 4 tables
  $ grep -c '<script>alert' bad.html
  0
  [1]

A key of resolved.toml may be hostile, too:

  $ echo 'note = "</style><script>"' | cat - runs/other/resolved.toml > changed.toml && mv changed.toml runs/other/resolved.toml
  $ triax report runs/run runs/other --html bad.html | grep note
    note                  -  "</style><script>"
  $ python3 "$SOURCE/tests/page/check-page" bad.html
  6 sections, 12 figures, 4 tables

## Damaged, incomplete and failed runs

  $ cp -r runs/run part; rm part/resolved.toml part/memory.json part/timeline-rank-1.json
  $ printf 'noise\n{"step":7}\n{"step":7,"loss":2.5}\n{"step":8' >> part/metrics.jsonl
  $ echo '{"reason":"rank 1 was lost"}' > part/failure.json
  $ triax report part --html part.html | timeless
    run   state   step  of    loss  held-out  checkpoint
    part  failed     7   -  {loss}    {loss}           6
  
  of rank 0: medians over the recorded steps, bytes sent in a step on each axis, planned memory:
    run   tokens/s  step ms  bubble  pipeline  memory
    part {times}   57.5 kB       -
  
  note: part: failed: rank 1 was lost
  note: part: resolved.toml is missing: the configuration is not known
  note: part: metrics.jsonl: line 7 is not a step record; damaged records are skipped
  note: part: metrics.jsonl ends within a line, which is skipped
  note: part: metrics.jsonl: has several records of a step (1 in total); the last record of each step is used
  note: part: the timelines are not those of all ranks in one step; they are left out
  
  page: part.html
  $ python3 "$SOURCE/tests/page/check-page" part.html
  4 sections, 9 figures, 2 tables
  $ mkdir empty; touch empty/metrics.jsonl; echo 'a = ' > empty/resolved.toml
  $ triax report empty --html empty.html
    run    state    step  of  loss  held-out  checkpoint
    empty  unknown     0   -     -         -           -
  
  of rank 0: medians over the recorded steps, bytes sent in a step on each axis, planned memory:
    run    tokens/s  step ms  bubble  memory
    empty         -        -       -       -
  
  note: empty: resolved.toml:1:4: not valid TOML: a has no value
  note: empty: no step is recorded yet
  
  page: empty.html
  $ python3 "$SOURCE/tests/page/check-page" empty.html
  1 sections, 0 figures, 2 tables

A name of the metrics that TOML escapes:

  $ triax train base.toml --set 'log.metrics="a\"b.jsonl"' --set run.dir=quoted --set train.steps=2 > /dev/null 2>&1
  $ triax report quoted --json | grep -o '"last_step":[^,]*'
  "last_step":2

A run that writes now is in progress, and its last line may not be complete:

  $ cp -r runs/run now; printf '{"step":' >> now/metrics.jsonl
  $ flock now "$TRIAX" report now | sed -n '2p;/note/p' | timeless
    now  in progress     6   6  {loss}    {loss}           6

The scheduler of a run need not be installed here:

  $ sed -i 's/"sched-gpipe"/"sched-elsewhere"/' runs/run/resolved.toml
  $ triax report runs/run --html elsewhere.html > /dev/null
  $ grep -c 'the simulated step cannot be shown' elsewhere.html
  1

## Errors

  $ triax report
  triax: RUN_DIR is required
    see: triax report --help
  [2]
  $ triax report '[runs/run]'
  triax: RUN_DIR cannot be "[runs/run]", which is the form of a list; write "./[runs/run]"
    see: triax report --help
  [2]
  $ triax report runs/nothing
  runs/nothing: does not exist
    name the folder of a run: run.dir, by default runs/ and the TOML's name
  [2]
  $ mkdir compared; touch compared/compare.json
  $ triax report runs/run compared --json 2>&1 > /dev/null
  warning: compared: is the folder of a comparison, and is left out
    compare.json has its result; the runs of its sides are the folders a and b in it
  $ triax report compared compared
  compared: is the folder of a comparison
    compare.json has its result; the runs of its sides are compared/a and compared/b
  [2]
  $ triax report run.toml
  run.toml: is not a folder
    name the folder of a run: run.dir, by default runs/ and the TOML's name
  [2]
  $ triax report runs
  runs: is not the folder of a run: it has neither resolved.toml nor metrics.jsonl
    triax train writes them once all ranks have joined
  [2]
  $ triax report runs/nothing --json
  runs/nothing: does not exist
    name the folder of a run: run.dir, by default runs/ and the TOML's name
  {"errors":[{"code":"not-found","keys":["RUN_DIR"],"file":"runs/nothing","line":null,"column":null,"message":"does not exist","hint":"name the folder of a run: run.dir, by default runs/ and the TOML's name"}]}
  [2]
  $ triax report runs/run --html nowhere/run.html
  triax: --html: folder "nowhere" does not exist
    see: triax report --help
  [2]
  $ triax report runs/run --html runs
  triax: --html must name a file, got "runs"
    see: triax report --help
  [2]
