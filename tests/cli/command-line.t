# SPDX-License-Identifier: Apache-2.0

# The command line

What is not a command of triax is refused, with the nearest that is.

  $ . "$TESTDIR/setup"

Without a verb:

  $ triax 
  triax: missing subcommand; use one of: train, evaluate, generate, compare, report, check, fit, plan, checkpoint, import, export, schedule, simulate, plugins, data, bench
    see: triax --help
  [2]

A misspelled verb:

  $ triax chekc run.toml
  triax: unknown subcommand chekc; use one of: train, evaluate, generate, compare, report, check, fit, plan, checkpoint, import, export, schedule, simulate, plugins, data, bench
    did you mean check? see: triax --help
  [2]

A misspelled flag:

  $ triax check base.toml --no-devise
  triax: unexpected argument: --no-devise
    did you mean --no-device? see: triax check --help
  [2]

Keys are not flags:

  $ triax train base.toml --steps 5 --global-batch=3
  triax: unexpected arguments: --steps 5 --global-batch=3
    did you mean --set train.steps=...? see: triax train --help
  [2]

Values that a flag does not allow:

  $ triax train base.toml --max-restarts x
  triax: --max-restarts must be an integer in [0, 1000000], got "x"
    see: triax train --help
  [2]
  $ triax schedule --scheduler sched-gpipe --pipeline 2 --microbatches 2 --cap 0
  triax: --cap must be an integer in [1, 1073741824], got "0"
    see: triax schedule --help
  [2]
  $ triax schedule --scheduler sched-gpipe --pipeline 2 --microbatches 2 --format svgz
  triax: --format must be table, csv, svg, json or trace, got "svgz"
    see: triax schedule --help
  [2]

A verb takes one run:

  $ triax train base.toml more.toml
  triax: unexpected argument: more.toml
    see: triax train --help
  [2]

With `--json`, the error is an object on stdout, too:

  $ triax check --json 2> /dev/null
  {"errors":[{"code":"missing","keys":["RUN.toml"],"file":null,"line":null,"column":null,"message":"RUN.toml is required","hint":"see: triax check --help"}]}
  [2]
  $ triax chekc run.toml --json 2> /dev/null
  {"errors":[{"code":"unknown-key","keys":["chekc"],"file":null,"line":null,"column":null,"message":"unknown subcommand chekc; use one of: train, evaluate, generate, compare, report, check, fit, plan, checkpoint, import, export, schedule, simulate, plugins, data, bench","hint":"did you mean check? see: triax --help"}]}
  [2]
  $ triax check base.toml --no-devise --json 2> /dev/null
  {"errors":[{"code":"unknown-key","keys":["--no-devise"],"file":null,"line":null,"column":null,"message":"unexpected argument: --no-devise","hint":"did you mean --no-device? see: triax check --help"}]}
  [2]
  $ triax bench comm comm-local --ranks 0 --json 2> /dev/null
  {"errors":[{"code":"invalid-value","keys":["--ranks"],"file":null,"line":null,"column":null,"message":"--ranks must be an integer in [2, 1024], got \"0\"","hint":"see: triax bench comm --help"}]}
  [2]
  $ triax check base.toml --json --set 2> /dev/null
  {"errors":[{"code":"missing","keys":["--set"],"file":null,"line":null,"column":null,"message":"--set needs a value: TABLE.KEY=VALUE","hint":"see: triax check --help"}]}
  [2]
  $ triax plan base.toml --cluster c.toml --calibrate d.toml --json 2> /dev/null
  {"errors":[{"code":"conflict","keys":["--cluster"],"file":null,"line":null,"column":null,"message":"--cluster cannot be combined with --calibrate","hint":"see: triax plan --help"}]}
  [2]

The version, and help:

  $ triax --version
  triax {version}
  $ triax --help | grep -A12 '^Subcommands'
  Subcommands:
    train                       trains a model
    evaluate                    loss, perplexity and bits per byte of a checkpoint's weights
    generate                    continues a text with a checkpoint's weights
    compare                     trains two configurations in turns, and says which is faster
    report                      summarizes what runs have done, and how they differ
    check                       checks a run without starting it: values, plugins, layout, memory
    fit                         finds the settings under which a run fits into memory
    plan                        finds the layout under which a run trains fastest on a cluster
    checkpoint                  shows, verifies, compares and converts checkpoints
    import                      writes a checkpoint from a model of another program
    export                      writes the weights of a checkpoint for another program
    schedule                    creates a schedule, verifies it and shows it

A variable that nothing reads is reported:

  $ TRIAX_PLUGIN_PTAH=/x TRIAX_GPU_DEVICE=1 TRIAX_SPEED=2 TRIAX_GPU_LOG=0 triax plugins describe 2>&1 | LC_ALL=C sort
    see: triax plugins describe --help
  note: TRIAX_GPU_DEVICE is set, but Triax does not read it; did you mean TRIAX_GPU_DEVICES?
  note: TRIAX_PLUGIN_PTAH is set, but Triax does not read it; did you mean TRIAX_PLUGIN_PATH?
  note: TRIAX_SPEED is set, but Triax does not read it
  triax: plugin is required
  $ for name in $(sed -n 's/^| `\(TRIAX_GPU_[A-Z_]*\)`.*/\1/p' "$SOURCE/docs/gpu.md"); do
  >   env "$name=1" triax plugins describe 2>&1 | { grep -w "$name" || true; }
  > done

  $ RANK=1 TRIAX_SPEED=2 triax plugins describe
  triax: plugin is required
    see: triax plugins describe --help
  [2]

A result for a closed output is a failure:

  $ "$TRIAX" --version >&-
  standard output could not be written
  [1]
  $ "$TRIAX" --help >&-
  standard output could not be written
  [1]
  $ "$TRIAX" plugins list >&-
  standard output could not be written
  [1]
  $ "$TRIAX" schedule --scheduler sched-1f1b --pipeline 2 --microbatches 2 >&-
  standard output could not be written
  [1]
  $ "$TRIAX" simulate --scheduler sched-1f1b --pipeline 2 --microbatches 2 --forward-ms 1 --input-ms 1 --weight-ms 1 \
  >   --link-ms 0 >&-
  standard output could not be written
  [1]

A file that is made does not get the number of the closed output:

  $ "$TRIAX" schedule --scheduler sched-1f1b --pipeline 1 --microbatches 1 --format csv --output rows.csv >&-
  $ cat rows.csv
  0F0,0B0
