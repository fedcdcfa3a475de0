// SPDX-License-Identifier: Apache-2.0
#include "plugin/missing_symbol.hpp"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "plugin/loader.hpp"
#include "triax/text.hpp"

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

template <class T>
std::optional<T> item(const std::string& bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

std::string_view string_at(const std::string& bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  return bytes.c_str() + offset; // a std::string ends with NUL
}

/// Whether the dynamic symbol table of a library defines `symbol`. The engine's libraries have some thousand symbols.
bool exports(const fs::path& library, const std::string& symbol) {
  std::ifstream in(library, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto header = item<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto section_at = [&](std::uint64_t index) {
    return item<Elf64_Shdr>(bytes, header->e_shoff + index * header->e_shentsize);
  };
  for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
    const auto section = section_at(index);
    if (!section || section->sh_type != SHT_DYNSYM) continue;
    const auto names = section_at(section->sh_link);
    if (!names) return false;
    for (std::uint64_t at = 0; at < section->sh_size; at += sizeof(Elf64_Sym)) {
      const auto entry = item<Elf64_Sym>(bytes, section->sh_offset + at);
      if (!entry) return false;
      if (entry->st_shndx != SHN_UNDEF && string_at(bytes, names->sh_offset + entry->st_name) == symbol) return true;
    }
  }
  return false;
}

struct EngineLibrary {
  const char *file, *target;
};
constexpr EngineLibrary kEngine[] = {{"libtriax_core.so", "triax::core"}, {"libtriax_cuda.so", "triax::cuda"}};

std::string link_text(const std::string& plugin, std::string_view target) {
  return text("link it: triax_add_plugin({} SOURCES ... LINK {})", plugin, target);
}

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

std::string link_hint(const std::string& symbol, const std::string& plugin, const fs::path& libraries) {
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
  return text(
      "no library of this triax exports it: add the source file that defines it to SOURCES, or the library to "
      "LINK: triax_add_plugin({} SOURCES ... LINK ...)",
      plugin);
}

} // namespace triax::plugin
