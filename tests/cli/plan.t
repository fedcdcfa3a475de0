# SPDX-License-Identifier: Apache-2.0

# Predictions of published runs

  $ columns=id,set,unit,layers,hidden,heads,seq,vocab,p,t,d,b,B,v,recompute,sp,sg,fused,code,ddp
  $ cluster=$SOURCE/clusters/a100-dgx.toml
  $ { echo $columns; echo 145b,table1,tflops,80,12288,96,2048,51200,8,8,24,2,2304,2,full,0,1,1,2021,local; } > runs.csv

  $ triax plan --cluster $cluster --predict runs.csv
  id,prediction
  145b,146.722
  $ triax plan --cluster $cluster --predict runs.csv --json | sed 's/\(\.[0-9][0-9][0-9]\)[0-9]*/\1/'
  {
    "predictions": [
      {
        "id": "145b",
        "prediction": 146.721,
        "step_s": 25.033,
        "passes_s": 24.420,
        "reduction_s": 0.502,
        "optimizer_s": 0.084,
        "fixed_s": 0.026,
        "block_forward_s": 0.011,
        "block_backward_s": 0.034
      }
    ]
  }

The units of one run, and one that has no prediction:

  $ { echo "# of Korthikanti et al."; echo $columns; for unit in s/step seq/s "ms fwd" "ms bwd" zero3; do echo $unit,k,$unit,96,12288,96,2048,51200,8,8,1,1,64,3,selective,1,0,1,2022,local; done; } > units.csv
  $ triax plan --cluster $cluster --predict units.csv
  note: 1 line with the unit zero3 has no prediction: the cost model has no ZeRO stage 3
  id,prediction
  s/step,13.2907
  seq/s,4.81541
  ms fwd,5.82352
  ms bwd,10.0977
  zero3,

## Refused lists

  $ triax plan --cluster $cluster
  triax: --predict is required
    more: triax plan --help
  [2]
  $ triax plan --cluster $cluster --predict no.csv
  no.csv: cannot be read: No such file or directory
  [2]
  $ echo id,unit > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:1: column set is missing
    begin with id,set,unit,layers,hidden,heads,seq,vocab,p,t,d,b,B,v,recompute,sp,sg,fused,code,ddp
  [2]
  $ sed s/,2021,/,2020,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: code must be one of 2021, 2022, got "2020"
    choose one of them
  [2]
  $ sed s/,12288,/,wide,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv --json
  bad.csv:2: hidden must be in [1, 1000000], got "wide"
    write a whole number
  {"errors":[{"code":"invalid-value","keys":[],"file":null,"line":null,"column":null,"message":"bad.csv:2: hidden must be in [1, 1000000], got \"wide\"","hint":"write a whole number"}]}
  [2]
  $ { cat runs.csv; tail -1 runs.csv; } > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:3: id "145b" is listed twice
    give each line another id
  [2]

What the plugins of the run refuse:

  $ sed s/,2304,/,2303,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2 (145b): batch.global = 2303 is not divisible by parallel.data = 24 x batch.micro = 2: each data rank runs whole microbatches
    parallel.data is set by bad.csv:2 (145b)
    batch.micro is set by bad.csv:2 (145b)
    use batch.global 2256 or 2304
  [2]
  $ sed s/,96,2048,/,100,2048,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2 (145b): model.hidden = 12288 is not divisible by model.heads = 100: each head has hidden / heads columns
    model.heads is set by bad.csv:2 (145b)
    use hidden 12200 or 12300, or heads 96 or 128
  bad.csv:2 (145b): model.heads = 100 is not divisible by parallel.tensor = 8: each tensor rank has whole heads
    parallel.tensor is set by bad.csv:2 (145b)
    use heads 96 or 128, or tensor 5 or 10
  [2]
  $ sed s/,8,8,24,2,2304,2,/,9,8,24,2,2304,2,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2 (145b): m = 48 microbatches are not divisible by p = 9 pipeline ranks, as sched-interleaved requires
    batch.micro is set by bad.csv:2 (145b)
    parallel.data is set by bad.csv:2 (145b)
    parallel.pipeline is set by bad.csv:2 (145b)
    m = batch.global / (parallel.data x batch.micro); make it 45 or 54, or schedule.group 48, or use sched-1f1b with parallel.chunks 1
  [2]

Pipelines that are too long, and too many ranks:

  $ sed s/,8,8,24,2,2304,2,/,2048,8,1,1,16384,1,/\;s/,80,12288,/,4096,12288,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2 (145b): parallel.pipeline = 2048 with parallel.chunks = 1 is too large to predict: 20971520 passes of each direction are simulated, and at most 262144 can be
    parallel.chunks is set by bad.csv:2 (145b)
    use a smaller parallel.pipeline
  [2]
  $ sed s/,8,8,24,2,2304,2,/,8,8,65536,1,65536,1,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2 (145b): a layout of 4194304 ranks is too large to predict; the limit is 1048576
    parallel.tensor is set by bad.csv:2 (145b)
    parallel.pipeline is set by bad.csv:2 (145b)
    use smaller values of parallel.data, parallel.tensor or parallel.pipeline
  [2]

## Refused clusters

  $ triax plan --cluster no.toml --predict runs.csv
  no.toml: cannot be read: No such file or directory
  [2]
  $ sed -e 's/value = 312e12/value = "fast"/' -e 's/origin = "fitted"/origin = "guess"/' -e 's/^cards = 8/card = 8/' $cluster > bad.toml; triax plan --cluster bad.toml --predict runs.csv
  bad.toml:11:16: device.peak_16bit.value must be in [1, 1e+30], got "fast"
    units are bytes, seconds, FLOP/s; shares are fractions
  bad.toml:18:32: device.gemm_share.origin must be measured, published, fitted or prior, got "guess"
    say where the number comes from
  bad.toml:19:34: device.memory_share.origin must be measured, published, fitted or prior, got "guess"
    say where the number comes from
  bad.toml:20:33: device.score_share.origin must be measured, published, fitted or prior, got "guess"
    say where the number comes from
  bad.toml:21:32: device.narrow_head.origin must be measured, published, fitted or prior, got "guess"
    say where the number comes from
  bad.toml:30:2: node.cards is missing
    write how many there are in a node
  bad.toml:32:1: unknown key node.card
    did you mean node.cards?
  bad.toml:34:39: node.card_bandwidth.origin must be measured, published, fitted or prior, got "guess"
    say where the number comes from
  bad.toml:55:30: step.fixed_s.origin must be measured, published, fitted or prior, got "guess"
    say where the number comes from
  [2]

## The fastest layout of a run

  $ cat > run.toml <<'END'
  > [model]
  > plugin = "model-gpt"
  > layers = 4
  > hidden = 32
  > heads = 4
  > sequence = 16
  > vocab = 257
  > [batch]
  > global = 8
  > [schedule]
  > plugin = "sched-1f1b"
  > [comm]
  > plugin = "comm-local"
  > [kernels]
  > plugin = "kernels-cpu"
  > [optimizer]
  > plugin = "optim-adamw"
  > lr = 1e-3
  > [train]
  > steps = 2
  > [data]
  > path = "tokens"
  > END
  $ triax plan run.toml --cluster $cluster --gpus 4 --top 3 --tokens 1e9 > planned
  $ sed -n '/^  plan/,$p' planned | head -5

The plan is a run that the engine accepts and trains:

  $ sed -n '/^include/,$p' planned > plan.toml; cat plan.toml
  $ printf 'The cat sat on the mat. %.0s' $(seq 100) > text.txt; triax data prepare --input text.txt --tokenizer byte --output tokens > prepared 2>&1; echo $?
  $ triax check plan.toml > checked; echo $?
  $ triax train plan.toml --set run.dir=planned-run > /dev/null 2>&1; echo $?

Restricted searches, another planner, reasons and JSON:

  $ triax plan run.toml --cluster $cluster --gpus 4 --top 2 --fix pipeline=2 --fix schedule=gpipe --fix recompute=full --explain | sed -n '/^  plan/,/^$/p;/^the best/,/^$/p'
  $ triax plan run.toml --cluster $cluster --gpus 4 --planner sc21 --fix tensor=2 --json | grep -v '_s"\|error\|days'

## Refused searches

  $ triax plan run.toml --cluster $cluster --gpus 4 --fix tensor=two --fix colour=red --fix schedule=none
  $ triax plan run.toml --cluster $cluster --gpus 4 --reserve 84.9999GB
  $ triax plan run.toml --cluster $cluster --gpus 5 --fix data=5
  $ triax plan run.toml --cluster $cluster --planner sched-1f1b --gpus 2
  $ triax plan run.toml --cluster $cluster --planner nobody --gpus 2
  $ triax plan run.toml --cluster $cluster --predict runs.csv
