# SPDX-License-Identifier: Apache-2.0

# What is wrong with a plugin

`triax plugins doctor` makes every check that a plugin must pass, and continues after the first problem. The libraries are
built from `tests/plugin/fixtures`.

  $ . "$TESTDIR/doctor-setup"

## Healthy plugins

By name and by file:

  $ doctor sched-gpipe
    ok       search      {plugins}/sched-gpipe.so
    ok       file        a shared library for {machine}
    ok       ELF note    triax={version};abi=1.1;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    ok       toolchain   compatible with that of this triax
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    ok       plugin ABI  1.1
    ok       interface   scheduler, version 2
    ok       name        sched-gpipe
    ok       descriptor  version {version}
    ok       options     0 declared
    ok       object      created with the default options, and destroyed
  sched-gpipe is healthy
  $ doctor "$BUILD/lib/triax/plugins/sched-gpipe.so" | grep -v healthy | diff - <(doctor sched-gpipe | grep -v healthy)

All plugins of this build are healthy:

  $ for plugin in "$BUILD"/lib/triax/plugins/*.so; do triax plugins doctor "$plugin" > out || cat out; done

A plugin whose option has no default is not created:

  $ broken described | tail -n 5
    ok       options     6 declared
    note     object      described could not be created: option "steps" has no value: it is required and not set, or is not in the plugin's option table
                         option steps has no default
                         next: triax check RUN.toml creates it with the options of a run
  {fixtures}/described.so is healthy

As JSON:

  $ triax plugins doctor sched-gpipe --json | python3 -c 'import json, sys
  > of = json.load(sys.stdin)
  > print(of["plugin"], of["healthy"], of["problems"], [check["check"] for check in of["checks"]])
  > print(of["checks"][0])'
  sched-gpipe True 0 ['search', 'file', 'ELF note', 'toolchain', 'core', 'exports', 'libraries', 'symbols', 'load', 'entry', 'plugin ABI', 'interface', 'name', 'descriptor', 'options', 'object']
  {'check': 'search', 'outcome': 'ok', 'text': '{plugins}/sched-gpipe.so', 'details': [], 'next': ''}

## A plugin that is not found

A misspelled name:

  $ mkdir mine empty
  $ cp "$fixtures/honest.so" mine/sched-mine.so
  $ cp "$fixtures/honest.so" mine/libsched-yours.so
  $ TRIAX_PLUGIN_PATH=$PWD/empty doctor sched-mien --path mine
    problem  search      plugin "sched-mien" was not found
                         mine (--path): 2 plugins; did you mean sched-mine.so?
                         {folder}/empty (TRIAX_PLUGIN_PATH): 0 plugins; none is similar
                         {plugins} (of Triax): {n} plugins; did you mean sched-file.so?
                         next: write sched-mine
  sched-mien has 1 problem
  [1]

A name without its prefix:

  $ doctor gpipe
    problem  search      plugin "gpipe" was not found
                         {plugins} (of Triax): {n} plugins; did you mean sched-gpipe.so?
                         next: write sched-gpipe
  gpipe has 1 problem
  [1]

A file with the prefix of a library:

  $ doctor sched-yours --path mine
    problem  search      plugin "sched-yours" was not found
                         mine (--path): 2 plugins; did you mean libsched-yours.so?
                         {plugins} (of Triax): {n} plugins; none is similar
                         next: a plugin's file is named NAME.so, such as sched-yours.so, not libsched-yours.so: build it with triax_add_plugin(sched-yours ...)
  sched-yours has 1 problem
  [1]

A path that does not exist:

  $ triax plugins doctor mine/sched-mien.so
    problem  search      {folder}/mine/sched-mien.so: no such file
                         {folder}/mine (its folder): 2 plugins; did you mean sched-mine.so?
                         next: correct the path; triax plugins list shows the plugins that are found by name
  mine/sched-mien.so has 1 problem
  [1]
  $ triax plugins doctor nowhere/below/sched-mine.so
    problem  search      {folder}/nowhere/below/sched-mine.so: no such file
                         of its path, only {folder} exists
                         next: correct the path; triax plugins list shows the plugins that are found by name
  nowhere/below/sched-mine.so has 1 problem
  [1]

A folder of the environment that does not exist:

  $ TRIAX_PLUGIN_PATH=/no/such/folder triax plugins doctor sched-gpipe | head -n 3
    problem  search      TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder
                         next: create it, or remove it from the variable
    ok       search      {plugins}/sched-gpipe.so

A file that hides others:

  $ cp "$BUILD/lib/triax/plugins/sched-gpipe.so" mine
  $ triax plugins doctor sched-gpipe --path mine | head -n 2
    note     search      {folder}/mine/sched-gpipe.so
                         hides {plugins}/sched-gpipe.so

Wrong use:

  $ triax plugins doctor
  triax: plugin is required
    see: triax plugins doctor --help
  [2]
  $ triax plugins doctor sched-gpipe --path nothing
  triax: --path must be a folder that exists, got "nothing"
    see: triax plugins doctor --help
  [2]

## A file that is not a library for this machine

  $ echo 'INPUT(-lmine)' > text.so; : > empty.so; mkdir folder.so; ln -s gone.so dangling.so
  $ printf '!<arch>\n%060d' 0 > archive.so
  $ cp "$fixtures/honest.so" cut.so; truncate -s 3000 cut.so
  $ cp "$fixtures/honest.so" foreign.so; printf '\xf3\x00' | dd of=foreign.so bs=1 seek=18 conv=notrunc status=none
  $ for file in text empty folder dangling archive cut; do triax plugins doctor ./$file.so; done
    ok       search      {folder}/text.so
    problem  file        is not a shared library (no ELF header)
                         next: a plugin is the shared library that triax_add_plugin() builds
  ./text.so has 1 problem
    ok       search      {folder}/empty.so
    problem  file        is not a shared library (no ELF header)
                         next: the file is empty: build the plugin again
  ./empty.so has 1 problem
    ok       search      {folder}/folder.so
    problem  file        is a folder, not a library
                         next: name a library in it
  ./folder.so has 1 problem
    ok       search      {folder}/dangling.so
    problem  file        is a dangling symlink to gone.so
                         next: remove the symlink, or build its target
  ./dangling.so has 1 problem
    ok       search      {folder}/archive.so
    problem  file        is not a shared library (no ELF header)
                         next: it is a static library: triax_add_plugin() builds a shared one
  ./archive.so has 1 problem
    ok       search      {folder}/cut.so
    problem  file        is a damaged shared library (cut off?)
                         next: build or copy it again
  ./cut.so has 1 problem
  [1]
  $ triax plugins doctor ./foreign.so | sed 's/this triax is for .*/this triax is for {machine}/; s/build it for .*/build it for {machine}/'
    ok       search      {folder}/foreign.so
    problem  file        is a library for RISC-V; this triax is for {machine}
                         next: build it for {machine}
  ./foreign.so has 1 problem

## What it exports

No entry function:

  $ broken no-entry
    ok       search      {fixtures}/no-entry.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        it is not linked with libtriax_core.so
    problem  exports     it does not export triax_plugin_entry_v1
                         it exports nothing
                         next: end one source with TRIAX_PLUGIN(...), and build the library with triax_add_plugin()
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    skipped  entry, plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: it has no entry function
  {fixtures}/no-entry.so has 1 problem
  [1]

An entry function with the name that C++ gives it:

  $ broken mangled-entry
    ok       search      {fixtures}/mangled-entry.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    problem  exports     it does not export triax_plugin_entry_v1
                         it exports _Z21triax_plugin_entry_v1v, which is a C++ name
                         next: declare the function extern "C", or end the source with TRIAX_PLUGIN(...)
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    skipped  entry, plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: it has no entry function
  {fixtures}/mangled-entry.so has 1 problem
  [1]

More than the entry function:

  $ broken exports-more
    ok       search      {fixtures}/exports-more.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    problem  exports     it exports 2 symbols besides triax_plugin_entry_v1
                         mine::helper(int)
                         mine::counter
                         next: build it with triax_add_plugin(), whose version script hides them: the symbols of two plugins could replace each other
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    ok       plugin ABI  1.1
    ok       toolchain   libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    ok       interface   scheduler, version 2
    ok       name        exports-more
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    ok       object      created with the default options, and destroyed
  {fixtures}/exports-more.so has 1 problem
  [1]

## What it was built with

Another sanitizer, by its note:

  $ broken noted-sanitizer
    ok       search      {fixtures}/noted-sanitizer.so
    ok       file        a shared library for {machine}
    ok       ELF note    triax={version};abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    problem  toolchain   built with the memory sanitizer; this triax has {sanitizer}
                         next: build it with the same sanitizer in a separate folder, or use the triax that matches it
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    skipped  load, entry, plugin ABI, interface, name, descriptor, options, object
                         not checked: a library of another toolchain or core is not loaded
  {fixtures}/noted-sanitizer.so has 1 problem
  [1]

Another language version, by its descriptor:

  $ broken old-language
    ok       search      {fixtures}/old-language.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    ok       plugin ABI  1.1
    problem  toolchain   built as c++17; a plugin needs c++20 or later
                         next: use triax_add_plugin(), which sets c++20
    ok       interface   scheduler, version 2
    ok       name        old-language
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/old-language.so has 1 problem
  [1]

Another version of the core:

  $ broken other-core
    ok       search      {fixtures}/other-core.so
    ok       file        a shared library for {machine}
    note     ELF note    triax=9.9.1;abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
                         built for Triax 9.9.1; this is Triax {version}
    ok       toolchain   compatible with that of this triax
    problem  core        it is linked with libtriax_core.so.9.9; this triax is libtriax_core.so.{version}
                         next: its ELF note names Triax 9.9.1, but this is Triax {version}: rebuild the plugin
    ok       exports     triax_plugin_entry_v1, and nothing else
    skipped  load, entry, plugin ABI, interface, name, descriptor, options, object
                         not checked: a library of another toolchain or core is not loaded
  {fixtures}/other-core.so has 1 problem
  [1]

Another major version of the plugin ABI:

  $ broken newer-major
    ok       search      {fixtures}/newer-major.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    problem  plugin ABI  it is built for plugin ABI 2.5; this triax has 1.1
                         next: rebuild it against this triax
    skipped  toolchain, interface, name, descriptor, options
                         not checked: the descriptor cannot be read
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/newer-major.so has 1 problem
  [1]

An older version of its interface:

  $ broken older-interface
    ok       search      {fixtures}/older-interface.so
    ok       file        a shared library for {machine}
    note     ELF note    triax=0.0.9;abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
                         built for Triax 0.0.9; this is Triax {version}
    ok       toolchain   compatible with that of this triax
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    ok       plugin ABI  1.1
    problem  interface   it is built for version 1 of the scheduler interface; this triax has version 2
                         what changed (docs/plugins/changelog.md):
                         scheduler 2: `supports()` and `device_available()` return `Refusals` instead of `Support`.
                         scheduler 2: Return every reason: collect them with `Refusals::add()`.
                         scheduler 2: The core no longer searches the message for keys.
                         scheduler 2: Every interface object is `Extensible` (`triax/extension.hpp`).
                         scheduler 2: `PluginContext::loader` (`triax/plugin_loader.hpp`) creates objects of other plugins, for a plugin that wraps one (plugin ABI 1.1).
                         scheduler 2: `OpCall::bytes` counts a view twice that the operation reads and writes.
                         scheduler 2: `HfMapping` (`triax/hf_mapping.hpp`): an optional interface of models, with which they are imported from transformers and exported.
                         scheduler 2: `SavedState` (`triax/saved_state.hpp`): an optional interface for state that a checkpoint must hold besides tensors.
                         scheduler 2: The contract of each interface is numbered clauses, such as `[M1]`, in its header.
                         scheduler 2: An `Axis` says what it `divides`: layers, tensors, samples or positions.
                         scheduler 2: Sizes and ranks of groups have the names of PyTorch and NCCL, such as `Communicator::rank()`.
                         scheduler 2: `Schedule::delay` no longer exists.
                         next: rebuild it against this triax: docs/plugins/changelog.md lists what changed
    ok       name        older-interface
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/older-interface.so has 1 problem
  [1]

A newer version of its interface:

  $ broken wrong-interface
    ok       search      {fixtures}/wrong-interface.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    ok       plugin ABI  1.1
    ok       toolchain   libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    problem  interface   it is built for version 99 of the scheduler interface; this triax has version 2
                         next: use the Triax that it was built for, or rebuild it against this one
    ok       name        wrong-interface
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/wrong-interface.so has 1 problem
  [1]
