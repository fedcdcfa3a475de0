// SPDX-License-Identifier: Apache-2.0
// Reads ELF headers directly: Boost.DLL's errors say nothing useful about a file that is not a library.
#include "plugin/elf_note.hpp"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::plugin {

namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
#error "name this machine's ELF number"
#endif

struct Machine {
  int number;
  std::string_view name;
};
constexpr Machine kMachines[] = {{EM_X86_64, "x86-64"}, {EM_AARCH64, "AArch64"},  {EM_386, "i386"},  {EM_ARM, "ARM"},
                                 {EM_RISCV, "RISC-V"},  {EM_PPC64, "PowerPC 64"}, {EM_S390, "S/390"}};

std::string machine_name(int number) {
  const auto* known = std::ranges::find(kMachines, number, &Machine::number);
  return known == std::end(kMachines) ? text("the machine with ELF number {}", number) : std::string(known->name);
}

constexpr const char* kCopyAgain = "build or copy it again";
constexpr std::uint64_t kMaxBytes = 1 << 20; // limit of a note segment, a dynamic section, a string

/// Reads parts of one file. A part that is outside the file is empty.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : in_(file, std::ios::binary) {}

  std::string bytes(std::uint64_t offset, std::uint64_t size) {
    if (size > kMaxBytes) return {};
    std::string out(size, '\0');
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(out.data(), static_cast<std::streamsize>(size));
    return in_.gcount() == static_cast<std::streamsize>(size) ? out : std::string();
  }

  template <class T>
  std::optional<T> at(std::uint64_t offset) {
    const std::string raw = bytes(offset, sizeof(T));
    if (raw.empty()) return std::nullopt;
    T out;
    std::memcpy(&out, raw.data(), sizeof out);
    return out;
  }

  /// At most `most`: fewer if the file is shorter.
  std::string first_bytes(std::size_t most) {
    std::string out(most, '\0');
    in_.clear();
    in_.seekg(0);
    in_.read(out.data(), static_cast<std::streamsize>(most));
    out.resize(static_cast<std::size_t>(in_.gcount()));
    return out;
  }

  std::string text(std::uint64_t offset) {
    std::string out;
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    for (char c = 0; out.size() < kMaxBytes && in_.get(c) && c != '\0';) out += c;
    return out;
  }

 private:
  std::ifstream in_;
};

/// The form of a file that is not an ELF file, by its first bytes, and the next step.
std::string hint_for(const std::string& first_bytes) {
  if (first_bytes.empty()) return "the file is empty: build the plugin again";
  if (first_bytes.starts_with("!<arch>")) return "it is a static library: triax_add_plugin() builds a shared one";
  if (first_bytes.starts_with("#!")) return "it is a script: name the library that it builds";
  if (first_bytes.starts_with("MZ")) return "it is a library for Windows: build it on this machine";
  if (first_bytes.starts_with("version https://git-lfs"))
    return "it is a pointer of Git LFS: git lfs pull downloads the file";
  return "a plugin is the shared library that triax_add_plugin() builds";
}

Elf64_Ehdr read_header(Reader& reader, const std::filesystem::path& file) {
  const auto ident = reader.bytes(0, EI_NIDENT);
  if (ident.empty() || std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0) {
    throw Error("is not a shared library (no ELF header)", file.string(), hint_for(reader.first_bytes(32)));
  }
  const auto header = reader.at<Elf64_Ehdr>(0);
  const bool is_foreign = ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB;
  if (header && (is_foreign || header->e_machine != kMachine)) {
    const bool is_swapped = ident[EI_DATA] == ELFDATA2MSB;
    const int machine = is_swapped ? __builtin_bswap16(header->e_machine) : header->e_machine;
    throw Error(text("is a library for {}{}; this triax is for {}", machine_name(machine),
                     machine == kMachine ? " with another word size or byte order" : "", own_machine()),
                file.string(), text("build it for {}", own_machine()));
  }
  if (!header) throw Error("is a damaged shared library (cut off?)", file.string(), kCopyAgain);
  if (header->e_type != ET_DYN) {
    throw Error("is an ELF file, but not a shared library", file.string(),
                header->e_type == ET_REL ? "it is an object file: triax_add_plugin() links it to a library"
                                         : "build the library with triax_add_plugin()");
  }
  return *header;
}

std::vector<Elf64_Phdr> read_segments(Reader& reader, const Elf64_Ehdr& header, const std::filesystem::path& file) {
  const std::uint64_t size = std::filesystem::file_size(file);
  std::vector<Elf64_Phdr> segments;
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = reader.at<Elf64_Phdr>(header.e_phoff + static_cast<std::uint64_t>(i) * header.e_phentsize);
    // A segment that is not completely in the file would cause a bus error in dlopen.
    if (!segment || segment->p_offset + segment->p_filesz > size) {
      throw Error("is a damaged shared library (cut off?)", file.string(), kCopyAgain);
    }
    segments.push_back(*segment);
  }
  return segments;
}

constexpr std::string_view kName("Triax\0", 6); // a note's name includes its NUL

/// The text of the note with type 1 and name "Triax" in one PT_NOTE segment.
std::string find_note(const std::string& bytes, std::uint64_t alignment) {
  const auto align = [alignment](std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; };
  for (std::uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, bytes.data() + at, sizeof note);
    const std::uint64_t name = at + sizeof note, content = align(name + note.n_namesz);
    if (content + note.n_descsz > bytes.size()) return {};
    if (note.n_type == 1 && std::string_view(bytes).substr(name, note.n_namesz) == kName) {
      const std::string content_text = bytes.substr(content, note.n_descsz);
      return content_text.substr(0, content_text.find('\0'));
    }
    at = align(content + note.n_descsz);
  }
  return {};
}

/// Position in the file of an address in the loaded library.
std::optional<std::uint64_t> file_offset(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const auto& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address < segment.p_vaddr + segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

void read_dynamic(Reader& reader, const std::vector<Elf64_Phdr>& segments, const Elf64_Phdr& dynamic, ElfFile& out) {
  const std::string bytes = reader.bytes(dynamic.p_offset, dynamic.p_filesz);
  std::vector<Elf64_Dyn> entries;
  std::optional<std::uint64_t> strings;
  for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= bytes.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) strings = file_offset(segments, entry.d_un.d_ptr);
    entries.push_back(entry);
  }
  if (!strings) return;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NEEDED) out.needed.push_back(reader.text(*strings + entry.d_un.d_val));
    if (entry.d_tag == DT_RPATH) out.rpath = reader.text(*strings + entry.d_un.d_val);
    if (entry.d_tag == DT_RUNPATH) out.runpath = reader.text(*strings + entry.d_un.d_val);
  }
}

/// Throws Error unless `file` is a readable file, or a symlink to one.
void check_readable(const std::filesystem::path& file) {
  std::error_code failed;
  const auto status = std::filesystem::status(file, failed);
  if (status.type() == std::filesystem::file_type::regular) {
    if (access(file.c_str(), R_OK) == 0) return;
    throw Error(text("cannot be read: {}", errno_text()), file.string(), "make it readable for this user");
  }
  if (status.type() == std::filesystem::file_type::directory)
    throw Error("is a folder, not a library", file.string(), "name a library in it");
  std::error_code no_link;
  const auto target = std::filesystem::read_symlink(file, no_link);
  if (!no_link && status.type() == std::filesystem::file_type::not_found) {
    throw Error(text("is a dangling symlink to {}", target), file.string(), "remove the symlink, or build its target");
  }
  if (status.type() == std::filesystem::file_type::not_found)
    throw Error("no such file", file.string(), "triax plugins list shows the plugins that are found by name");
  if (!no_link && failed) {
    throw Error(text("is a symlink to {}, which cannot be followed: {}", target, failed.message()), file.string(),
                "remove the symlink, or let it point to a library");
  }
  if (failed)
    throw Error(text("cannot be read: {}", failed.message()), file.string(), "check the path and its permissions");
  throw Error("is not a regular file", file.string(), "name a library");
}

} // namespace

Note parse_note(std::string_view text) {
  Note note;
  note.text = text;
  const auto take = [&text](std::string_view key) {
    if (!text.starts_with(key)) return std::string();
    const std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    return std::string(part.substr(key.size()));
  };
  note.triax = take("triax=");
  note.abi = take("abi=");
  note.toolchain = text;
  return note;
}

std::string_view own_machine() {
  return std::ranges::find(kMachines, kMachine, &Machine::number)->name;
}

ElfFile read_elf(const std::filesystem::path& file) {
  check_readable(file);
  Reader reader(file);
  const auto segments = read_segments(reader, read_header(reader, file), file);
  ElfFile out;
  for (const auto& segment : segments) {
    if (segment.p_type == PT_NOTE && out.note.text.empty()) {
      out.note = parse_note(find_note(reader.bytes(segment.p_offset, segment.p_filesz), segment.p_align == 8 ? 8 : 4));
    }
    if (segment.p_type == PT_DYNAMIC) read_dynamic(reader, segments, segment, out);
  }
  return out;
}

} // namespace triax::plugin
