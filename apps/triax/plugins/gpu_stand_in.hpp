// SPDX-License-Identifier: Apache-2.0
// The GPU stand-in (docs/gpu.md) under `triax plugins test`: NVIDIA's libraries for a plugin that computes on GPUs, on
// a machine without one. It is installed with the files for plugin authors.
//
// Threads: the main thread, before it loads the plugin. Ownership: libraries are never unloaded. Blocking: reads files.
// Errors: Error if a library of the stand-in does not load.
#pragma once

#include <filesystem>
#include <string>

namespace triax::app {

/// lib/triax/gpu-stand-in beside libtriax_core, in an installation and in a build folder.
std::filesystem::path gpu_stand_in_folder();

/// If the plugin links CUDA, cuBLAS or NCCL, and this machine has no NVIDIA driver, loads the stand-in: the plugin,
/// which is loaded later, and child processes then use its libraries, with eight devices unless TRIAX_GPU_DEVICES is
/// set. Returns whether it did. False where the stand-in is not installed, or where scripts/gpu-stand-in has loaded it.
bool load_gpu_stand_in(const std::filesystem::path& plugin);

/// The next step if a suite needs a GPU and found none.
std::string gpu_stand_in_hint();

} // namespace triax::app
