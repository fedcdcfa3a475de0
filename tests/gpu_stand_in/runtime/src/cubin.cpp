// SPDX-License-Identifier: Apache-2.0
// Reads registers and shared memory of kernels from a cubin, which is an ELF file: ".text.KERNEL" has the registers in
// the highest byte of sh_info, and the size of ".nv.shared.KERNEL" is the static shared memory.
#include <elf.h>

#include <cstring>

#include "fat_binary.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr std::string_view kText = ".text.", kShared = ".nv.shared.";
constexpr unsigned kRegisterShift = 24;
constexpr std::uint16_t kMachineCuda = 190; // EM_CUDA

template <class T>
bool read_at(std::span<const std::byte> bytes, std::size_t offset, T& value) {
  if (offset > bytes.size() || sizeof value > bytes.size() - offset) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return true;
}

std::string_view text_at(std::span<const std::byte> bytes, std::size_t offset) {
  if (offset >= bytes.size()) return {};
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + offset;
  return {text, strnlen(text, bytes.size() - offset)};
}

} // namespace

std::map<std::string, KernelResources, std::less<>> read_cubin(std::span<const std::byte> cubin) {
  std::map<std::string, KernelResources, std::less<>> found;
  Elf64_Ehdr file{};
  if (!read_at(cubin, 0, file) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_machine != kMachineCuda) {
    return found;
  }
  Elf64_Shdr names{};
  if (!read_at(cubin, file.e_shoff + file.e_shstrndx * sizeof names, names)) return found;
  for (std::size_t n = 0; n < file.e_shnum; ++n) {
    Elf64_Shdr section{};
    if (!read_at(cubin, file.e_shoff + n * sizeof section, section)) return {};
    const std::string_view name = text_at(cubin, names.sh_offset + section.sh_name);
    if (name.starts_with(kText)) {
      found[std::string(name.substr(kText.size()))].registers = static_cast<int>(section.sh_info >> kRegisterShift);
    } else if (name.starts_with(kShared)) {
      found[std::string(name.substr(kShared.size()))].shared_bytes = section.sh_size;
    }
  }
  // ".nv.shared.reserved.0" and the like are not kernels'.
  std::erase_if(found, [](const auto& each) { return each.second.registers == 0; });
  return found;
}

} // namespace triax::gpu_stand_in
