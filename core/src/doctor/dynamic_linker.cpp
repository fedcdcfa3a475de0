// SPDX-License-Identifier: Apache-2.0
#include "doctor/dynamic_linker.hpp"

#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "triax/error.hpp"

namespace triax::doctor {

namespace {

namespace fs = std::filesystem;

/// The folders of a colon-separated list; $ORIGIN is the folder of `library`.
std::vector<fs::path> folders_of(std::string_view list, const fs::path& library) {
  std::vector<fs::path> out;
  while (!list.empty()) {
    std::string folder(list.substr(0, list.find(':')));
    list.remove_prefix(std::min(list.size(), folder.size() + 1));
    for (const std::string_view origin : {"${ORIGIN}", "$ORIGIN"})
      if (const std::size_t at = folder.find(origin); at != std::string::npos)
        folder.replace(at, origin.size(), library.parent_path().string());
    if (!folder.empty()) out.push_back(fs::path(folder).lexically_normal());
  }
  return out;
}

std::string folder_list(const std::vector<fs::path>& folders) {
  std::string out;
  for (const fs::path& folder : folders) {
    std::error_code unreadable;
    out += (out.empty() ? "" : ", ") + folder.string();
    if (!fs::is_directory(folder, unreadable)) out += " (no such folder)";
  }
  return out.empty() ? "none" : out;
}

/// The files that this process has loaded, by the names under which libraries need them.
std::map<std::string, fs::path> loaded_libraries() {
  std::map<std::string, fs::path> out;
  const auto add = [](dl_phdr_info* library, std::size_t, void* data) {
    const fs::path file = *library->dlpi_name ? library->dlpi_name : "/proc/self/exe";
    static_cast<std::map<std::string, fs::path>*>(data)->emplace(file.filename().string(), file);
    return 0;
  };
  dl_iterate_phdr(add, &out);
  return out;
}

/// Reads the file as the dynamic linker does: a library for another machine is passed over.
std::optional<plugin::ElfFile> read_library(const fs::path& file) {
  std::error_code unreadable;
  if (!fs::is_regular_file(file, unreadable)) return std::nullopt;
  try {
    return plugin::read_elf(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

class Tracer {
 public:
  explicit Tracer(const LinkerPaths& paths) : paths_(paths), loaded_(loaded_libraries()) {}

  Dependencies trace(const fs::path& file) {
    for (const auto& [name, loaded] : loaded_) out_.files.push_back(loaded);
    if (const auto elf = read_library(file)) waiting_.push_back({file, *elf, {}});
    while (!waiting_.empty()) {
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      for (const std::string& needed : next.elf.needed)
        if (!loaded_.contains(needed) && seen_.insert(needed).second) find(needed, next);
    }
    return std::move(out_);
  }

 private:
  struct Waiting {
    fs::path file;
    plugin::ElfFile elf;
    std::vector<fs::path> inherited; // DT_RPATH of the libraries that need it
  };

  /// Where the linker looks next.
  struct SearchStep {
    std::string name;
    std::vector<fs::path> folders;
  };

  std::vector<SearchStep> steps_before_cache(const Waiting& by) const {
    std::vector<SearchStep> out;
    if (by.elf.runpath.empty()) {
      std::vector<fs::path> rpath = folders_of(by.elf.rpath, by.file);
      rpath.insert(rpath.end(), by.inherited.begin(), by.inherited.end());
      if (!rpath.empty()) out.push_back({text("RPATH of {}", by.file.filename().string()), rpath});
    }
    out.push_back({"LD_LIBRARY_PATH", paths_.library_path});
    out.push_back({text("RUNPATH of {}", by.file.filename().string()), folders_of(by.elf.runpath, by.file)});
    return out;
  }

  bool take(const fs::path& candidate, const Waiting& by) {
    auto elf = read_library(candidate);
    if (!elf) return false;
    out_.files.push_back(candidate);
    std::vector<fs::path> inherited = folders_of(by.elf.rpath, by.file);
    inherited.insert(inherited.end(), by.inherited.begin(), by.inherited.end());
    waiting_.push_back({candidate, std::move(*elf), std::move(inherited)});
    return true;
  }

  void find(const std::string& needed, const Waiting& by) {
    if (needed.find('/') != std::string::npos) { // a path is not searched for
      if (!take(needed, by)) out_.missing.push_back({needed, by.file, {"it is needed as a path"}});
      return;
    }
    MissingLibrary missing{needed, by.file, {}};
    for (const SearchStep& step : steps_before_cache(by)) {
      for (const fs::path& folder : step.folders)
        if (take(folder / needed, by)) return;
      missing.searched.push_back(text("{}: {}", step.name, folder_list(step.folders)));
    }
    const auto [first, last] = paths_.cache.equal_range(needed);
    for (auto cached = first; cached != last; ++cached)
      if (take(cached->second, by)) return;
    missing.searched.push_back(text("/etc/ld.so.cache: {}", other_versions(needed)));
    for (const fs::path& folder : paths_.defaults)
      if (take(folder / needed, by)) return;
    missing.searched.push_back(text("default folders: {}", folder_list(paths_.defaults)));
    out_.missing.push_back(std::move(missing));
  }

  /// "has libx.so.2" for libx.so.1: a common reason.
  std::string other_versions(const std::string& needed) const {
    const std::string stem = needed.substr(0, needed.find(".so")) + ".so";
    std::set<std::string> names;
    for (auto cached = paths_.cache.lower_bound(stem); cached != paths_.cache.end(); ++cached) {
      if (!cached->first.starts_with(stem)) break;
      names.insert(cached->first);
    }
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "not this version, but " : ", ") + name;
    return out.empty() ? "not listed" : out;
  }

  const LinkerPaths& paths_;
  const std::map<std::string, fs::path> loaded_;
  std::set<std::string> seen_;
  std::deque<Waiting> waiting_;
  Dependencies out_;
};

// The cache: a header, entries, strings. Offsets of strings count from the header (glibc, elf/cache.c and dl-cache.h).
constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";
struct CacheHeader {
  char magic[20];
  std::uint32_t count, string_bytes;
  std::uint8_t flags, padding[3];
  std::uint32_t extension, unused[3];
};
static_assert(sizeof(CacheHeader) == 48);
struct CacheEntry {
  std::int32_t flags;
  std::uint32_t name, path, os_version;
  std::uint64_t capabilities;
};
static_assert(sizeof(CacheEntry) == 24);

std::string string_of_cache(std::string_view cache, std::uint32_t offset) {
  if (offset >= cache.size()) return {};
  const std::string_view rest = cache.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

} // namespace

LinkerCache read_linker_cache(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  LinkerCache out;
  const std::size_t begin = bytes.find(kCacheMagic); // an older format may precede it
  if (begin == std::string::npos) return out;
  const std::string_view cache = std::string_view(bytes).substr(begin);
  CacheHeader header;
  if (cache.size() < sizeof header) return out;
  std::memcpy(&header, cache.data(), sizeof header);
  for (std::uint64_t i = 0; i < header.count; ++i) {
    const std::uint64_t at = sizeof header + i * sizeof(CacheEntry);
    if (at + sizeof(CacheEntry) > cache.size()) break;
    CacheEntry entry;
    std::memcpy(&entry, cache.data() + at, sizeof entry);
    out.emplace(string_of_cache(cache, entry.name), string_of_cache(cache, entry.path));
  }
  return out;
}

LinkerPaths linker_paths() {
  const char* const variable = std::getenv("LD_LIBRARY_PATH");
  return {folders_of(variable ? variable : "", "/proc/self/exe"),
          read_linker_cache(),
          {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}};
}

Dependencies trace_dependencies(const fs::path& file, const LinkerPaths& paths) {
  return Tracer(paths).trace(file);
}

} // namespace triax::doctor
