# SPDX-License-Identifier: Apache-2.0

# Plans with cheap recomputation

  $ . "$TESTDIR/setup"
  $ cluster=$SOURCE/clusters/a100-dgx.toml

A plan needs the memory that `triax check` plans for its TOML:

  $ triax plan base.toml --cluster $cluster --gpus 2 --fix recompute=cheap --top 1 > planned; sed -n '/^include/,$p' planned > cheap.toml; grep ^recompute cheap.toml
  recompute = "cheap"
  $ triax check cheap.toml --json > checked; echo $?
  0
  $ triax plan base.toml --cluster $cluster --gpus 2 --fix recompute=cheap --top 1 --json | grep -o '"bytes": [0-9]*' | head -1 > planned
  $ sed -n '/"largest_rank"/,/"bytes"/p' checked | grep -o '"bytes": [0-9]*' | cmp - planned

With enough memory, it takes longer than no recomputation, and less time than full recomputation:

  $ triax plan base.toml --cluster $cluster --gpus 2 --top 1 --explain | grep -o '^  memory.recompute: .* longer\|memory.recompute = "cheap"' | sed 's/: .* longer/ takes longer/'
    memory.recompute takes longer
  memory.recompute = "cheap"

If the kernel set cannot repeat the operations, no plan has it:

  $ elsewhere() { triax plan base.toml --cluster $cluster --gpus 2 --set "plugins.path=[\"$BUILD/tests/train/plugins\"]" --set comm.plugin=comm-processes --set kernels.plugin=kernels-elsewhere "$@"; }
  $ elsewhere --top 1 2>&1 > planned
  note: no plan has cheap recomputation: kernels.plugin "kernels-elsewhere": activations in f32 cannot be repeated
    use bf16
  $ elsewhere --top 1 --json 2> /dev/null | sed -n '/"unavailable"/,/]/p'
    "unavailable": [
      {
        "setting": "memory.recompute",
        "value": "cheap",
        "message": "kernels.plugin \"kernels-elsewhere\": activations in f32 cannot be repeated",
        "hint": "use bf16"
      }
    ],
  $ elsewhere --fix recompute=cheap 2>&1 | grep -o 'refuse every plan\|activations in f32 cannot be repeated'
  refuse every plan
  activations in f32 cannot be repeated
  $ elsewhere --set train.precision=bf16 --fix recompute=cheap --top 1 | grep '^recompute'
  recompute = "cheap"
