// SPDX-License-Identifier: Apache-2.0
#include "plugin/elf_symbols.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "os/descriptor.hpp"

namespace triax::plugin {

namespace {

/// The bytes of a file; none if it cannot be mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& file) {
    const os::Descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (opened.number() < 0 || fstat(opened.number(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (status.st_size == 0) return;
    size_ = static_cast<std::size_t>(status.st_size);
    memory_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, opened.number(), 0);
  }
  ~MappedFile() {
    if (memory_ != MAP_FAILED) munmap(memory_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const {
    return memory_ == MAP_FAILED ? std::string_view() : std::string_view(static_cast<const char*>(memory_), size_);
  }

 private:
  void* memory_ = MAP_FAILED;
  std::size_t size_ = 0;
};

template <class T>
std::optional<T> item_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

std::string_view string_at(std::string_view bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const std::string_view rest = bytes.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

/// Calls `visit(name, entry)` for each dynamic symbol that has a name.
template <class Visit>
void visit_symbols(const std::filesystem::path& file, const Visit& visit) {
  const MappedFile mapped(file);
  const std::string_view bytes = mapped.bytes();
  const auto header = item_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return;
  const auto section_at = [&](std::uint64_t index) {
    return item_at<Elf64_Shdr>(bytes, header->e_shoff + index * header->e_shentsize);
  };
  for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
    const auto section = section_at(index);
    if (!section || section->sh_type != SHT_DYNSYM) continue;
    const auto names = section_at(section->sh_link);
    if (!names) return;
    for (std::uint64_t at = 0; at < section->sh_size; at += sizeof(Elf64_Sym)) {
      const auto entry = item_at<Elf64_Sym>(bytes, section->sh_offset + at);
      if (!entry) return;
      if (const std::string_view name = string_at(bytes, names->sh_offset + entry->st_name); !name.empty())
        visit(name, *entry);
    }
  }
}

bool is_defined(const Elf64_Sym& entry) {
  return entry.st_shndx != SHN_UNDEF;
}

} // namespace

DynamicSymbols read_symbols(const std::filesystem::path& file) {
  DynamicSymbols out;
  visit_symbols(file, [&out](std::string_view name, const Elf64_Sym& entry) {
    if (is_defined(entry)) {
      out.defined.emplace_back(name);
    } else if (ELF64_ST_BIND(entry.st_info) != STB_WEAK) {
      out.undefined.emplace_back(name);
    }
  });
  return out;
}

bool exports(const std::filesystem::path& file, const std::string& symbol) {
  bool found = false;
  visit_symbols(file, [&](std::string_view name, const Elf64_Sym& entry) {
    found = found || (is_defined(entry) && name == symbol);
  });
  return found;
}

void remove_exported(const std::filesystem::path& file, std::unordered_set<std::string>& symbols) {
  visit_symbols(file, [&symbols](std::string_view name, const Elf64_Sym& entry) {
    if (is_defined(entry)) symbols.erase(std::string(name));
  });
}

} // namespace triax::plugin
