# SPDX-License-Identifier: Apache-2.0

# Predictions of published runs

  $ columns=id,set,unit,layers,hidden,heads,seq,vocab,p,t,d,b,B,v,recompute,sp,sg,fused,code,ddp
  $ cluster=$SOURCE/clusters/a100-dgx.toml
  $ { echo $columns; echo 145b,table1,tflops,80,12288,96,2048,51200,8,8,24,2,2304,2,full,0,1,1,2021,local; } > runs.csv

  $ triax plan --cluster $cluster --predict runs.csv
  id,prediction
  145b,146.708
  $ triax plan --cluster $cluster --predict runs.csv --json | sed 's/\(\.[0-9][0-9][0-9]\)[0-9]*/\1/'
  {
    "predictions": [
      {
        "id": "145b",
        "prediction": 146.707,
        "step_s": 25.035,
        "passes_s": 24.423,
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
  s/step,13.2908
  seq/s,4.81538
  ms fwd,5.82352
  ms bwd,10.0978
  zero3,

The backward of a block is longer the more it recomputes:

  $ { echo $columns; for recompute in full none cheap; do echo $recompute,k,ms bwd,96,12288,96,2048,51200,8,8,1,1,64,3,$recompute,1,0,1,2022,local; done; } > recompute.csv
  $ triax plan --cluster $cluster --predict recompute.csv | tail -3 | sort -t, -k2 -g | cut -d, -f1
  none
  cheap
  full

## Refused lists

  $ triax plan --cluster $cluster
  triax: RUN.toml or --predict is required
    see: triax plan --help
  [2]
  $ triax plan run.toml
  triax: --cluster is required: a file of clusters/ (installed: share/triax/clusters), or one that --calibrate writes
    see: triax plan --help
  [2]
  $ triax plan --cluster $cluster --predict no.csv
  no.csv: does not exist
    correct the path
  [2]
  $ echo id,unit > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:1: missing columns: set, layers, hidden, heads, seq, vocab, p, t, d, b, B, v, recompute, sp, sg, fused, code, ddp
    begin with id,set,unit,layers,hidden,heads,seq,vocab,p,t,d,b,B,v,recompute,sp,sg,fused,code,ddp
  [2]
  $ sed '1s/,ddp/,hidden,colour/' runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:1: missing column: ddp; repeated column: hidden; unknown column: colour
    begin with id,set,unit,layers,hidden,heads,seq,vocab,p,t,d,b,B,v,recompute,sp,sg,fused,code,ddp
  [2]
  $ sed s/,2021,/,2020,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: code must be one of 2021, 2022, got "2020"
    choose one of them
  [2]
  $ sed s/,full,/,some,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: recompute must be one of none, cheap, full, selective, got "some"
    choose one of them
  [2]
  $ sed s/,12288,/,wide,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv --json
  bad.csv:2: hidden = "wide" is not an integer
    write a whole number
  {"errors":[{"code":"invalid-value","keys":["--predict"],"file":"bad.csv","line":2,"column":null,"message":"hidden = \"wide\" is not an integer","hint":"write a whole number"}]}
  [2]
  $ { cat runs.csv; tail -1 runs.csv; } > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:3: id "145b" is listed twice
    give each line another id
  [2]

What the plugins of the run refuse:

  $ sed s/,2304,/,2303,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: 145b: B = 2303 is not divisible by d = 24 x b = 2: each data rank runs whole microbatches
    use B 2256 or 2304
  [2]
  $ sed s/,96,2048,/,100,2048,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: 145b: hidden = 12288 is not divisible by heads = 100: each head has hidden / heads columns
    use hidden 12200 or 12300, or heads 96 or 128
  bad.csv:2: 145b: heads = 100 is not divisible by t = 8: each tensor rank has whole heads
    use heads 96 or 128, or t 5 or 10
  [2]
  $ sed s/,8,8,24,2,2304,2,/,9,8,24,2,2304,2,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: 145b: m = 48 microbatches are not divisible by p = 9 pipeline ranks, as sched-interleaved requires
    set B / (d x b) to 45 or 54, or use schedule.group 48, or sched-1f1b with v 1
  [2]

Pipelines that are too long, and too many ranks:

  $ sed s/,8,8,24,2,2304,2,/,2048,8,1,1,16384,1,/\;s/,80,12288,/,4096,12288,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: 145b: p = 2048 with v = 1 is too large to predict: 20971520 passes of each direction are simulated; the limit is 262144
    use a smaller p
  [2]
  $ sed s/,8,8,24,2,2304,2,/,8,8,65536,1,65536,1,/ runs.csv > bad.csv; triax plan --cluster $cluster --predict bad.csv
  bad.csv:2: 145b: a layout of 4194304 ranks is too large to predict; the limit is 1048576
    use smaller values of d, t or p
  [2]

## Refused clusters

  $ triax plan --cluster no.toml --predict runs.csv
  no.toml: does not exist
    correct the path; examples are in clusters/
  [2]
  $ triax check no.toml --json 2>/dev/null | grep -o '"code": .*'
  "code": "not-found",
  $ echo '[model]' > bad.toml; triax plan --cluster bad.toml --predict runs.csv
  bad.toml: not a cluster file: it has no [cluster] table
    use one of clusters/, such as clusters/a100-dgx.toml
  [2]
  $ sed 's/^memory_bytes/memory_byts/' $cluster > bad.toml; triax plan --cluster bad.toml --predict runs.csv
  bad.toml:9:2: device.memory_bytes is missing
    write memory_bytes = { value = ..., origin = "...", width = ... }; units are bytes, seconds, FLOP/s; shares are fractions
  bad.toml:13:1: unknown key device.memory_byts
    did you mean device.memory_bytes?
  [2]
  $ sed -e 's/value = 312e12/value = "fast"/' -e 's/origin = "fitted"/origin = "guess"/' -e 's/^nics = 8/nic = 8/' $cluster > bad.toml; triax plan --cluster bad.toml --predict runs.csv
  bad.toml:11:16: device.peak_16bit.value must be in [1, 1e+30], got "fast"
    units are bytes, seconds, FLOP/s; shares are fractions
  bad.toml:18:37: device.gemm_efficiency.origin must be measured, published, fitted or prior, got "guess"
    use prior for a value that was not measured
  bad.toml:19:42: device.bandwidth_efficiency.origin must be measured, published, fitted or prior, got "guess"
    use prior for a value that was not measured
  bad.toml:20:38: device.score_efficiency.origin must be measured, published, fitted or prior, got "guess"
    use prior for a value that was not measured
  bad.toml:21:32: device.narrow_head.origin must be measured, published, fitted or prior, got "guess"
    use prior for a value that was not measured
  bad.toml:30:2: node.nics is missing
    write how many there are in a node
  bad.toml:32:1: unknown key node.nic
    did you mean node.nics?
  bad.toml:36:38: node.nic_bandwidth.origin must be measured, published, fitted or prior, got "guess"
    use prior for a value that was not measured
  bad.toml:57:30: step.fixed_s.origin must be measured, published, fitted or prior, got "guess"
    use prior for a value that was not measured
  [2]
