# SPDX-License-Identifier: Apache-2.0

# What is wrong with a plugin's descriptor and object

`triax plugins doctor` makes every check that a plugin must pass, and continues after the first problem. The libraries are
built from `tests/plugin/fixtures`.

  $ . "$TESTDIR/doctor-setup"

## Its descriptor

None:

  $ broken null-descriptor
    ok       search      {fixtures}/null-descriptor.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        it is not linked with libtriax_core.so
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    problem  plugin ABI  its triax_plugin_entry_v1() returns no descriptor
                         next: end its source with TRIAX_PLUGIN(...)
    skipped  toolchain, interface, name, descriptor, options
                         not checked: the descriptor cannot be read
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/null-descriptor.so has 1 problem
  [1]

One that cannot be read:

  $ broken bad-magic
    ok       search      {fixtures}/bad-magic.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    ok       entry       triax_plugin_entry_v1() returns
    problem  plugin ABI  its descriptor does not begin with the magic number of the plugin ABI
                         next: fill it with TRIAX_PLUGIN
    skipped  toolchain, interface, name, descriptor, options
                         not checked: the descriptor cannot be read
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/bad-magic.so has 1 problem
  [1]

Another name than the file:

  $ broken other-name
    ok       search      {fixtures}/other-name.so
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
    ok       interface   scheduler, version 2
    problem  name        the file is named "other-name", but the plugin is named "sched-mine"
                         next: a plugin is found by its file's name: build it with triax_add_plugin(sched-mine ...)
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    ok       object      created with the default options, and destroyed
  {fixtures}/other-name.so has 1 problem
  [1]

An unknown kind:

  $ broken unknown-kind
    ok       search      {fixtures}/unknown-kind.so
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
    problem  interface   its kind "tokenizer" is unknown
                         next: kinds: communicator, scheduler, kernels, model, optimizer, planner
    ok       name        unknown-kind
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/unknown-kind.so has 1 problem
  [1]

No functions:

  $ broken no-create
    ok       search      {fixtures}/no-create.so
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
    ok       interface   scheduler, version 2
    ok       name        no-create
    problem  descriptor  its descriptor lacks create or destroy
                         next: fill the descriptor with TRIAX_PLUGIN
    ok       options     0 declared
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/no-create.so has 1 problem
  [1]

An option twice:

  $ broken duplicate-option
    ok       search      {fixtures}/duplicate-option.so
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
    ok       interface   scheduler, version 2
    ok       name        duplicate-option
    ok       descriptor  version 1.2.3
    problem  options     its option table: option "depth" is declared twice
                         next: remove or rename one of the two rows
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/duplicate-option.so has 1 problem
  [1]

An option with a name of Triax:

  $ broken core-key
    ok       search      {fixtures}/core-key.so
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
    ok       interface   optimizer, version 4
    ok       name        core-key
    ok       descriptor  version 1.2.3
    problem  options     core-key has an option "lr", which is a key of the core in [optimizer]
                         next: rename the option; keys of the core in [optimizer]: lr, weight_decay, shard, prefetch
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/core-key.so has 1 problem
  [1]

Several faults:

  $ broken several-faults
    ok       search      {fixtures}/several-faults.so
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
    ok       interface   optimizer, version 4
    problem  name        the file is named "several-faults", but the plugin is named "optim-other"
                         next: a plugin is found by its file's name: build it with triax_add_plugin(optim-other ...)
    problem  descriptor  its descriptor has no version
                         next: fill the descriptor with TRIAX_PLUGIN
    problem  options     its option table: the default depth must be in [1, 8], got 9
                         next: correct its row of the table
    problem  options     its option table: option "fast" is declared twice
                         next: remove or rename one of the two rows
    problem  options     several-faults has an option "lr", which is a key of the core in [optimizer]
                         next: rename the option; keys of the core in [optimizer]: lr, weight_decay, shard, prefetch
    skipped  object
                         not checked: its descriptor has a problem
  {fixtures}/several-faults.so has 5 problems
  [1]

## Its object

A constructor that throws:

  $ broken throwing-create
    ok       search      {fixtures}/throwing-create.so
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
    ok       name        throwing-create
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    problem  object      throwing-create could not be created: the fixture: no schedule today
                         next: come back tomorrow
  {fixtures}/throwing-create.so has 1 problem
  [1]
  $ broken throwing-int
    ok       search      {fixtures}/throwing-int.so
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
    ok       name        throwing-int
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    problem  object      throwing-int could not be created: an unknown exception (not derived from std::exception)
                         next: change its options, which triax plugins describe throwing-int lists, or report this to its author
  {fixtures}/throwing-int.so has 1 problem
  [1]

A constructor that crashes:

  $ broken crashing-create
    ok       search      {fixtures}/crashing-create.so
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
    ok       name        crashing-create
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    problem  object      its constructor crashed with SIGSEGV (Segmentation fault)
                         next: this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {fixtures}/crashing-create.so
  {fixtures}/crashing-create.so has 1 problem
  [1]

A destructor that crashes:

  $ broken crashing-destroy
    ok       search      {fixtures}/crashing-destroy.so
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
    ok       name        crashing-destroy
    ok       descriptor  version 1.2.3
    ok       options     0 declared
    problem  object      its destructor crashed with SIGSEGV (Segmentation fault)
                         next: this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {fixtures}/crashing-destroy.so
  {fixtures}/crashing-destroy.so has 1 problem
  [1]
