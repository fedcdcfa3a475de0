// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu_stand_in.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "plugin/elf_note.hpp"
#include "plugin/loader.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

constexpr std::array kLibraries = {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libnccl.so.2"};

/// As scripts/gpu-stand-in: the driver, or that of WSL.
bool has_driver() {
  return fs::exists("/proc/driver/nvidia/version") || fs::exists("/dev/dxg");
}

bool needs_gpu(const fs::path& plugin) {
  try {
    return std::ranges::any_of(plugin::read_elf(plugin).needed, [](std::string_view name) {
      return name.starts_with("libtriax_cuda.so") || std::ranges::find(kLibraries, name) != kLibraries.end();
    });
  } catch (const Error&) {
    return false; // loading it reports the error
  }
}

bool is_loaded(const char* name) {
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

} // namespace

fs::path gpu_stand_in_folder() {
  return plugin::core_folder() / "triax" / "gpu-stand-in";
}

bool load_gpu_stand_in(const fs::path& plugin) {
  if (has_driver() || is_loaded(kLibraries.front()) || !fs::exists(gpu_stand_in_folder()) || !needs_gpu(plugin))
    return false;
  ::setenv("TRIAX_GPU_DEVICES", "8", 0); // one for each rank of a communicator
  // The dynamic linker takes a library that is loaded for every later one with its soname.
  for (const char* const name : kLibraries) {
    const fs::path file = gpu_stand_in_folder() / name;
    if (!fs::exists(file) && name == kLibraries.back()) continue; // built without NCCL
    if (!dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL))
      throw Error(text("a library of the GPU stand-in does not load: {}", dlerror()), file.string(),
                  "install Triax again, with its files for plugin authors");
  }
  return true;
}

std::string gpu_stand_in_hint() {
  const std::string hint = "run the suite on a machine with a GPU, or ";
  if (fs::exists(gpu_stand_in_folder())) return hint + "with triax-gpu-stand-in, which runs GPU code on the host";
  return hint +
         "install the GPU stand-in, which runs GPU code on the host: the package triax-dev, or the component "
         "development "
         "of a build with a CUDA toolkit";
}

} // namespace triax::app
