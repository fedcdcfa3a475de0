# SPDX-License-Identifier: Apache-2.0

# What is wrong with what a plugin needs, and with its initializers

`triax plugins doctor` makes every check that a plugin must pass, and continues after the first problem. The libraries are
built from `tests/plugin/fixtures`.

  $ . "$TESTDIR/doctor-setup"

## What it needs

A library that is not found:

  $ broken missing-dependency
    ok       search      {fixtures}/missing-dependency.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  libraries   libfixture-gone.so was not found
                         searched LD_LIBRARY_PATH: none
                         searched RUNPATH of missing-dependency.so: none
                         searched /etc/ld.so.cache: not listed
                         searched default folders: /lib64, /usr/lib64, /lib, /usr/lib
                         next: install libfixture-gone.so, put its folder on LD_LIBRARY_PATH, or link the plugin with an rpath to it
    note     symbols     undefined symbol from_a_library_that_is_gone
                         next: a library that was not found may export it; otherwise: no library of this triax exports it: add the source file that defines it to SOURCES, or the library to LINK: triax_add_plugin(missing-dependency SOURCES ... LINK ...)
    skipped  load
                         not checked: see the problems above
    skipped  entry, plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/missing-dependency.so has 1 problem
  [1]

A library that is not found, of a library that it needs:

  $ broken missing-indirect
    ok       search      {fixtures}/missing-indirect.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  libraries   libfixture-gone.so was not found
                         needed by {build}/tests/plugin/linked/needy/libfixture-needy.so
                         searched LD_LIBRARY_PATH: none
                         searched RUNPATH of libfixture-needy.so: none
                         searched /etc/ld.so.cache: not listed
                         searched default folders: /lib64, /usr/lib64, /lib, /usr/lib
                         next: install libfixture-gone.so, put its folder on LD_LIBRARY_PATH, or link the plugin with an rpath to it
    skipped  load
                         not checked: see the problems above
    skipped  entry, plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/missing-indirect.so has 1 problem
  [1]

An older version of a library:

  $ broken too-new
    ok       search      {fixtures}/too-new.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  load        found, but does not load: {build}/tests/plugin/linked/older/libfixture-versioned.so: version `VERS_2' not found (required by {fixtures}/too-new.so)
                         next: the plugin was linked with a newer libfixture-versioned.so than this machine has: build it on this machine, or install that libfixture-versioned.so
    skipped  entry, plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/too-new.so has 1 problem
  [1]

A symbol of the plugin that no source defines:

  $ broken missing-helper
    ok       search      {fixtures}/missing-helper.so
    ok       file        a shared library for {machine}
    ok       ELF note    triax={version};abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    ok       toolchain   compatible with that of this triax
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  symbols     undefined symbol mine::helper(int)
                         next: no library of this triax exports it: add the source file that defines it to SOURCES, or the library to LINK: triax_add_plugin(missing-helper SOURCES ... LINK ...)
    skipped  load
                         not checked: see the problems above
    skipped  entry, plugin ABI, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/missing-helper.so has 1 problem
  [1]

A symbol of a library that is installed:

  $ broken missing-system-library
    ok       search      {fixtures}/missing-system-library.so
    ok       file        a shared library for {machine}
    ok       ELF note    triax={version};abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    ok       toolchain   compatible with that of this triax
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  symbols     undefined symbol td_ta_new
                         next: {folder}/libthread_db.so.1 exports it; link it: triax_add_plugin(missing-system-library SOURCES ... LINK thread_db)
    skipped  load
                         not checked: see the problems above
    skipped  entry, plugin ABI, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/missing-system-library.so has 1 problem
  [1]

A symbol of cuBLAS:

  $ broken missing-cublas
    ok       search      {fixtures}/missing-cublas.so
    ok       file        a shared library for {machine}
    ok       ELF note    triax={version};abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    ok       toolchain   compatible with that of this triax
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  symbols     undefined symbol cublasCreate_v2
                         next: by its name, it belongs to cuBLAS (libcublas.so); link it: triax_add_plugin(missing-cublas SOURCES ... LINK CUDA::cublas)
    skipped  load
                         not checked: see the problems above
    skipped  entry, plugin ABI, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/missing-cublas.so has 1 problem
  [1]

A symbol of another engine:

  $ broken unresolved-symbol
    ok       search      {fixtures}/unresolved-symbol.so
    ok       file        a shared library for {machine}
    note     ELF note    triax=0.0.9;abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
                         built for Triax 0.0.9; this is Triax {version}
    ok       toolchain   compatible with that of this triax
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  symbols     undefined symbol triax::what_this_engine_lacks(triax::Action const&)
                         next: its ELF note names Triax 0.0.9, but this is Triax {version}: rebuild the plugin
    skipped  load
                         not checked: see the problems above
    skipped  entry, plugin ABI, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/unresolved-symbol.so has 1 problem
  [1]

Several:

  $ broken missing-several
    ok       search      {fixtures}/missing-several.so
    ok       file        a shared library for {machine}
    ok       ELF note    triax={version};abi=1.0;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
    ok       toolchain   compatible with that of this triax
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    problem  libraries   libfixture-gone.so was not found
                         searched LD_LIBRARY_PATH: none
                         searched RUNPATH of missing-several.so: none
                         searched /etc/ld.so.cache: not listed
                         searched default folders: /lib64, /usr/lib64, /lib, /usr/lib
                         next: install libfixture-gone.so, put its folder on LD_LIBRARY_PATH, or link the plugin with an rpath to it
    note     symbols     undefined symbol from_a_library_that_is_gone
                         next: a library that was not found may export it; otherwise: no library of this triax exports it: add the source file that defines it to SOURCES, or the library to LINK: triax_add_plugin(missing-several SOURCES ... LINK ...)
    note     symbols     undefined symbol mine::first_helper(int)
                         next: a library that was not found may export it; otherwise: no library of this triax exports it: add the source file that defines it to SOURCES, or the library to LINK: triax_add_plugin(missing-several SOURCES ... LINK ...)
    note     symbols     undefined symbol mine::second_helper(char const*)
                         next: a library that was not found may export it; otherwise: no library of this triax exports it: add the source file that defines it to SOURCES, or the library to LINK: triax_add_plugin(missing-several SOURCES ... LINK ...)
    note     symbols     undefined symbol ucp_fixture_call
                         next: a library that was not found may export it; otherwise: by its name, it belongs to UCX (libucp.so); link it: triax_add_plugin(missing-several SOURCES ... LINK ucp)
    skipped  load
                         not checked: see the problems above
    skipped  entry, plugin ABI, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/missing-several.so has 1 problem
  [1]

## What its initializers do

A crash:

  $ broken crashing-load
    ok       search      {fixtures}/crashing-load.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    problem  load        its library initializer crashed with SIGSEGV (Segmentation fault)
                         next: this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {fixtures}/crashing-load.so
    skipped  entry, plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/crashing-load.so has 1 problem
  [1]

An exit:

  $ broken leaves
    ok       search      {fixtures}/leaves.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    problem  load        its library initializer called exit(0)
                         next: this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {fixtures}/leaves.so
    skipped  entry, plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: it is not loaded
  {fixtures}/leaves.so has 1 problem
  [1]

An exception of the entry function:

  $ broken throwing-load
    ok       search      {fixtures}/throwing-load.so
    ok       file        a shared library for {machine}
    note     ELF note    the file has no ELF note with the versions that it was built for
                         next: use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load
    ok       core        libtriax_core.so.{version}
    ok       exports     triax_plugin_entry_v1, and nothing else
    ok       libraries   {n} needed, all found
    ok       symbols     all defined
    ok       load        its initializers return
    problem  entry       triax_plugin_entry_v1() threw an unknown exception (not derived from std::exception)
                         next: this is a defect of the plugin: nothing may throw before its constructor
    skipped  plugin ABI, toolchain, interface, name, descriptor, options, object
                         not checked: the descriptor cannot be read
  {fixtures}/throwing-load.so has 1 problem
  [1]
