// SPDX-License-Identifier: Apache-2.0
#include "plugin/missing_symbol.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "plugin/elf_symbols.hpp"
#include "plugin/loader.hpp"
#include "triax/text.hpp"
#include "triax/version.h"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

/// Symbols that begin with `prefix` (followed by a capital letter if `then_capital`) belong to `library`. `target` is
/// what a CMakeLists.txt links.
struct KnownLibrary {
  std::string_view prefix;
  bool then_capital;
  std::string_view library, target;
};

// The first match counts: longer prefixes come first.
constexpr KnownLibrary kKnown[] = {
    {"triax::p2p::", false, "Triax's library for communicators over messages (libtriax_p2p.a)", "triax::p2p"},
    {"triax::cuda::", false, "Triax's CUDA libraries", "triax::cuda_primitives"}, // links triax::cuda too
    {"cublasLt", false, "cuBLASLt (libcublasLt.so)", "CUDA::cublasLt"},
    {"cublas", false, "cuBLAS (libcublas.so)", "CUDA::cublas"},
    {"cudnn", false, "cuDNN (libcudnn.so)", "cudnn"},
    {"curand", false, "cuRAND (libcurand.so)", "CUDA::curand"},
    {"cusparse", false, "cuSPARSE (libcusparse.so)", "CUDA::cusparse"},
    {"nvrtc", false, "NVRTC (libnvrtc.so)", "CUDA::nvrtc"},
    {"nvtx", false, "NVTX (header-only nvtx3)", "CUDA::nvtx3"},
    {"nvml", false, "NVML (libnvidia-ml.so)", "CUDA::nvml"},
    {"cuda", true, "the CUDA runtime (libcudart.so)", "CUDA::cudart"},
    {"__cuda", true, "the CUDA runtime (libcudart.so)", "CUDA::cudart"},
    {"nccl", true, "NCCL (libnccl.so)", "nccl"},
    {"ucp_", false, "UCX (libucp.so)", "ucp"},
    {"uct_", false, "UCX (libuct.so)", "uct"},
    {"ucs_", false, "UCX (libucs.so)", "ucs"},
    {"ucc_", false, "UCC (libucc.so)", "ucc"},
    {"dnnl", false, "oneDNN (libdnnl.so)", "DNNL::dnnl"},
    {"MPI_", false, "MPI (libmpi.so)", "MPI::MPI_CXX"},
    {"ibv_", false, "libibverbs.so", "ibverbs"},
    {"omp_", false, "OpenMP (libgomp.so)", "OpenMP::OpenMP_CXX"},
    {"GOMP_", false, "OpenMP (libgomp.so)", "OpenMP::OpenMP_CXX"},
    {"cblas_", false, "BLAS (libcblas.so or libopenblas.so)", "BLAS::BLAS"},
};

const KnownLibrary* find_known(const std::string& name) {
  const auto* known = std::ranges::find_if(kKnown, [&name](const KnownLibrary& library) {
    if (!name.starts_with(library.prefix)) return false;
    if (!library.then_capital) return true;
    return name.size() > library.prefix.size() &&
           std::isupper(static_cast<unsigned char>(name[library.prefix.size()])) != 0;
  });
  return known == std::end(kKnown) ? nullptr : known;
}

struct EngineLibrary {
  const char *file, *target;
};
constexpr EngineLibrary kEngine[] = {{"libtriax_core.so", "triax::core"}, {"libtriax_cuda.so", "triax::cuda"}};

} // namespace

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 ? name : symbol;
  std::free(name); // NOLINT: the ABI's contract
  return out;
}

std::string link_hint(const std::string& symbol, const std::string& plugin) {
  return link_hint(symbol, plugin, core_folder());
}

std::string link_text(const std::string& plugin, std::string_view target) {
  return text("link it: triax_add_plugin({} SOURCES ... LINK {})", plugin, target);
}

std::string known_owner_hint(const std::string& symbol, const std::string& plugin, const fs::path& libraries) {
  for (const EngineLibrary& engine : kEngine) {
    if (exports(libraries / engine.file, symbol))
      return text("{} exports it; {}", engine.file, link_text(plugin, engine.target));
  }
  std::string name = demangled(symbol);
  for (const std::string_view of : {"vtable for ", "typeinfo for "})
    if (name.starts_with(of)) name.erase(0, of.size());
  if (const KnownLibrary* known = find_known(name))
    return text("by its name, it belongs to {}; {}", known->library, link_text(plugin, known->target));
  if (name.starts_with("triax::"))
    return "no library of this triax exports it: rebuild the plugin against the headers of this triax";
  return {};
}

std::string link_hint(const std::string& symbol, const std::string& plugin, const fs::path& libraries) {
  if (std::string known = known_owner_hint(symbol, plugin, libraries); !known.empty()) return known;
  return text(
      "no library of this triax exports it: add the source file that defines it to SOURCES, or the library to "
      "LINK: triax_add_plugin({} SOURCES ... LINK ...)",
      plugin);
}

std::string rebuild_hint(const Note& note) {
  if (note.text.empty())
    return "it has no ELF note with a version of Triax; this is Triax " TRIAX_VERSION ": rebuild the plugin";
  if (note.triax == TRIAX_VERSION) return {};
  return text("its ELF note names Triax {}, but this is Triax {}: rebuild the plugin", note.triax, TRIAX_VERSION);
}

bool is_of_other_engine(const std::string& symbol, const Note& note) {
  return demangled(symbol).starts_with("triax::") && !note.text.empty() && note.triax != TRIAX_VERSION;
}

/// GPU libraries are not part of Triax's packages: they are installed on the machine, or the user names their folder.
std::string missing_library_hint(const std::string& library) {
  constexpr const char* kOfGpus[] = {"libcudart.so", "libcublas.so", "libcublasLt.so", "libnccl.so"};
  if (std::ranges::any_of(kOfGpus, [&library](const char* name) { return library.starts_with(name); })) {
    return "put the folders of CUDA's libraries and NCCL's on LD_LIBRARY_PATH; scripts/cuda-libraries finds them "
           "(docs/bundle.md); on a machine without a GPU, triax-gpu-stand-in COMMAND replaces them (docs/gpu.md)";
  }
  return text("install {}, put its folder on LD_LIBRARY_PATH, or link the plugin with an rpath to it", library);
}

} // namespace triax::plugin
