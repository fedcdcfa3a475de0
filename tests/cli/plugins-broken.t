# SPDX-License-Identifier: Apache-2.0

# Plugins that cannot be used

Every kind of broken plugin has its own message. The libraries are built from `tests/plugin/fixtures`.

  $ cd "$BUILD/tests/plugin/fixtures" || exit 80

A library without an entry:

  $ triax plugins describe ./no-entry.so > /dev/null
  {fixtures}/no-entry.so: is a library, but not a triax plugin: it does not export triax_plugin_entry_v1
    end its source with TRIAX_PLUGIN(...) and build it with triax_add_plugin()
  [1]

An entry without a descriptor:

  $ triax plugins describe ./null-descriptor.so > /dev/null
  {fixtures}/null-descriptor.so: its triax_plugin_entry_v1() returns no descriptor
    end its source with TRIAX_PLUGIN(...)
  [1]

A descriptor without the magic number:

  $ triax plugins describe ./bad-magic.so > /dev/null
  {fixtures}/bad-magic.so: its descriptor does not begin with the magic number of the plugin ABI
    fill it with TRIAX_PLUGIN
  [1]

A descriptor that is too short:

  $ triax plugins describe ./short-descriptor.so > /dev/null
  {fixtures}/short-descriptor.so: its descriptor has 96 bytes; plugin ABI 1.0 has 104
    set struct_size to sizeof(triax_plugin)
  [1]

Another major version of the ABI:

  $ triax plugins describe ./newer-major.so > /dev/null
  {fixtures}/newer-major.so: it is built for plugin ABI 2.5; this triax has 1.1
    rebuild it against this triax
  [1]

Another sanitizer, by its note:

  $ triax plugins describe ./noted-sanitizer.so > /dev/null
  {fixtures}/noted-sanitizer.so: built with the memory sanitizer; this triax has {sanitizer}
    build it with the same sanitizer in a separate folder, or use the triax that matches it
  [1]

Another sanitizer, by its descriptor:

  $ triax plugins describe ./other-sanitizer.so > /dev/null
  {fixtures}/other-sanitizer.so: built with the memory sanitizer; this triax has {sanitizer}
    build it with the same sanitizer in a separate folder, or use the triax that matches it
  [1]

Another language version:

  $ triax plugins describe ./old-language.so > /dev/null
  {fixtures}/old-language.so: built as c++17; a plugin needs c++20 or later
    use triax_add_plugin(), which sets c++20
  [1]

An unresolved symbol:

  $ triax plugins describe ./unresolved-symbol.so > /dev/null
  {fixtures}/unresolved-symbol.so: found, but does not load: undefined symbol triax::what_this_engine_lacks(triax::Action const&)
    its ELF note names Triax 0.0.9, but this is Triax {version}: rebuild the plugin
  [1]

A library that is not there:

  $ triax plugins describe ./missing-dependency.so > /dev/null
  {fixtures}/missing-dependency.so: found, but does not load: libfixture-gone.so: cannot open shared object file: No such file or directory
    install libfixture-gone.so, put its folder on LD_LIBRARY_PATH, or link the plugin with an rpath to it
  [1]

A CUDA library that is not there:

  $ triax plugins describe ./missing-cuda.so > /dev/null
  {fixtures}/missing-cuda.so: found, but does not load: libcudart.so.99: cannot open shared object file: No such file or directory
    put the folders of CUDA's libraries and NCCL's on LD_LIBRARY_PATH; scripts/cuda-libraries finds them (docs/bundle.md); on a machine without a GPU, triax-gpu-stand-in COMMAND replaces them (docs/gpu.md)
  [1]

A symbol of cuBLAS:

  $ triax plugins describe ./missing-cublas.so > /dev/null
  {fixtures}/missing-cublas.so: found, but does not load: undefined symbol cublasCreate_v2
    by its name, it belongs to cuBLAS (libcublas.so); link it: triax_add_plugin(missing-cublas SOURCES ... LINK CUDA::cublas)
  [1]

A symbol of another library:

  $ triax plugins describe ./missing-helper.so > /dev/null
  {fixtures}/missing-helper.so: found, but does not load: undefined symbol mine::helper(int)
    no library of this triax exports it: add the source file that defines it to SOURCES, or the library to LINK: triax_add_plugin(missing-helper SOURCES ... LINK ...)
  [1]

Another version of the core:

  $ triax plugins describe ./other-core.so > /dev/null
  {fixtures}/other-core.so: it is linked with libtriax_core.so.9.9; this triax is libtriax_core.so.{version}
    its ELF note names Triax 9.9.1, but this is Triax {version}: rebuild the plugin
  [1]

A name that is not the file's:

  $ triax plugins describe ./other-name.so > /dev/null
  {fixtures}/other-name.so: the file is named "other-name", but the plugin is named "sched-mine"
    a plugin is found by its file's name: build it with triax_add_plugin(sched-mine ...)
  [1]

An unknown kind:

  $ triax plugins describe ./unknown-kind.so > /dev/null
  {fixtures}/unknown-kind.so: its kind "tokenizer" is unknown
    kinds: communicator, scheduler, kernels, model, optimizer, planner
  [1]

Another version of its interface:

  $ triax plugins describe ./wrong-interface.so > /dev/null
  {fixtures}/wrong-interface.so: it is built for version 99 of the scheduler interface; this triax has version 2
    use the Triax that it was built for, or rebuild it against this one
  [1]

No function that creates it:

  $ triax plugins describe ./no-create.so > /dev/null
  {fixtures}/no-create.so: its descriptor lacks create or destroy
    fill the descriptor with TRIAX_PLUGIN
  [1]

No version:

  $ triax plugins describe ./no-version.so > /dev/null
  {fixtures}/no-version.so: its descriptor has no version
    fill the descriptor with TRIAX_PLUGIN
  [1]

An option twice:

  $ triax plugins describe ./duplicate-option.so > /dev/null
  {fixtures}/duplicate-option.so: its option table: option "depth" is declared twice
    remove or rename one of the two rows
  [1]

A default out of range:

  $ triax plugins describe ./bad-default.so > /dev/null
  {fixtures}/bad-default.so: its option table: the default depth must be in [1, 8], got 9
    correct its row of the table
  [1]

Options of another size:

  $ triax plugins describe ./bad-stride.so > /dev/null
  {fixtures}/bad-stride.so: its option table is invalid: 1 rows of 12 bytes
    fill the descriptor with TRIAX_PLUGIN
  [1]

An option with a name of Triax:

  $ triax plugins describe ./core-key.so > /dev/null
  {fixtures}/core-key.so: core-key has an option "lr", which is a key of the core in [optimizer]
    rename the option; keys of the core in [optimizer]: lr, weight_decay, shard, prefetch
  [1]

An exception while it loads:

  $ triax plugins describe ./throwing-load.so > /dev/null
  {fixtures}/throwing-load.so: triax_plugin_entry_v1() threw an unknown exception (not derived from std::exception)
    this is a defect of the plugin: nothing may throw before its constructor
  [1]

## When it is created

An exception of Triax:

  $ triax schedule --path . --scheduler throwing-create --pipeline 1 --microbatches 1
  --scheduler "throwing-create": {fixtures}/throwing-create.so: throwing-create could not be created: the fixture: no schedule today
    come back tomorrow
  [2]

An exception of another type:

  $ triax schedule --path . --scheduler throwing-int --pipeline 1 --microbatches 1
  --scheduler "throwing-int": {fixtures}/throwing-int.so: throwing-int could not be created: an unknown exception (not derived from std::exception)
    change its options, which triax plugins describe throwing-int lists, or report this to its author
  [2]

Nothing is created, and no reason given:

  $ triax schedule --path . --scheduler silent-create --pipeline 1 --microbatches 1
  --scheduler "silent-create": {fixtures}/silent-create.so: silent-create could not be created: it gives no reason
    change its options, which triax plugins describe silent-create lists, or report this to its author
  [2]

## Described in spite of a problem

A plugin whose object cannot be created is described, and is a failure:

  $ triax plugins describe ./throwing-create.so | head -n 2
  {fixtures}/throwing-create.so: throwing-create could not be created: the fixture: no schedule today
    come back tomorrow
  throwing-create: a fixture
  kind         scheduler, interface version 2
  $ triax plugins describe ./throwing-int.so > /dev/null
  {fixtures}/throwing-int.so: throwing-int could not be created: an unknown exception (not derived from std::exception)
    change its options, which triax plugins describe throwing-int lists, or report this to its author
  [1]
  $ triax plugins describe ./throwing-int.so --json 2> /dev/null | grep -E '"(name|problem)"'
    "name": "throwing-int",
    "problem": "{fixtures}/throwing-int.so: throwing-int could not be created: an unknown exception (not derived from std::exception)\n  change its options, which triax plugins describe throwing-int lists, or report this to its author"

A file that is not a library is not described:

  $ echo text > "$CRAMTMP/text.so"; triax plugins describe "$CRAMTMP/text.so" 2>&1 | sed "s|$CRAMTMP|TMP|"
  TMP/text.so: is not a shared library (no ELF header)
    a plugin is the shared library that triax_add_plugin() builds
  $ triax plugins describe "$CRAMTMP/text.so" --json > /dev/null 2> /dev/null
  [2]
