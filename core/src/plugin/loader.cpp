// The only file that includes Boost. Two uses of Boost.DLL 1.74 are deliberate: the throwing overloads, because the
// others drop dlerror's text, and rtld_now, because a symbol missing at the first call would end the process.
#include "plugin/loader.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/descriptor.hpp"
#include "plugin/note.hpp"
#include "plugin/toolchain.hpp"
#include "triax/error.hpp"
#include "triax/toolchain.h"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

struct Opened {
  boost::dll::shared_library library;
  std::optional<Library> checked; // empty: a check failed; the library stays loaded all the same
};

struct Registry {
  std::mutex mutex;
  std::map<fs::path, Opened> opened; // by absolute path; its nodes do not move
};

Registry& registry() {
  // Leaked: code of a plugin may run until the very end of the process (threads, exit hooks, thrown objects).
  static auto* const leaked = new Registry;
  return *leaked;
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 ? name : symbol;
  std::free(name); // NOLINT: the ABI's contract
  return out;
}

/// dlerror's words out of Boost's sentence, without the path in front, symbols demangled.
std::string readable(std::string what, const fs::path& file) {
  const std::string before = "(dlerror system message: ", after = "): Bad file descriptor";
  if (const auto at = what.find(before); at != std::string::npos) what.erase(0, at + before.size());
  if (what.ends_with(after)) what.resize(what.size() - after.size());
  if (const std::string path = file.string() + ": "; what.starts_with(path)) what.erase(0, path.size());
  if (const std::string colon = "undefined symbol: "; what.starts_with(colon))
    what.replace(0, colon.size(), "undefined symbol ");
  if (const auto at = what.find("_Z"); at != std::string::npos) {
    const auto end = std::find_if_not(what.begin() + static_cast<std::ptrdiff_t>(at), what.end(),
                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    const auto size = static_cast<std::size_t>(end - what.begin()) - at;
    what.replace(at, size, demangled(what.substr(at, size)));
  }
  return what;
}

std::string rebuild_hint(const Note& note, const fs::path& file) {
  const std::string more = text("More: triax plugins describe {}", file);
  if (note.text.empty()) return "it has no note of the triax it was built for; this is " TRIAX_VERSION ". " + more;
  if (note.triax == TRIAX_VERSION) return "its note says triax " TRIAX_VERSION ", which this is. " + more;
  return text("its note says triax {}; this is {}: rebuild it. {}", note.triax, TRIAX_VERSION, more);
}

/// Libraries that no package of ours brings: a machine has them, or somebody says where.
std::optional<std::string> missing_hint(const std::string& what) {
  constexpr const char* kOfGpus[] = {"libcudart.so", "libcublas.so", "libcublasLt.so", "libnccl.so"};
  const bool of_gpus = std::ranges::any_of(kOfGpus, [&what](const char* name) { return what.starts_with(name); });
  if (!of_gpus || what.find("cannot open shared object file") == std::string::npos) return std::nullopt;
  return "put the folders of CUDA's libraries and NCCL's on LD_LIBRARY_PATH; scripts/cuda-libraries finds them "
         "(docs/bundle.md)";
}

/// The soname of the core in this process, "libtriax_core.so.0.1". A plugin linked with another would bring a second
/// core along, and with it second copies of every class.
void check_core(const ElfFile& elf, const fs::path& file) {
  const std::string prefix = "libtriax_core.so", version = TRIAX_VERSION;
  const std::string ours = prefix + "." + version.substr(0, version.rfind('.'));
  for (const std::string& needed : elf.needed) {
    if (!needed.starts_with(prefix) || needed == ours) continue;
    throw Error(text("it is linked with {}; this triax is {}", needed, ours), file.string(),
                rebuild_hint(elf.note, file));
  }
}

ElfFile read_before_loading(const fs::path& file) {
  ElfFile elf = read_elf(file);
  if (!elf.note.toolchain.empty()) {
    if (const auto answer = compatible(elf.note.toolchain, TRIAX_TOOLCHAIN); !answer) {
      throw Error(answer.reason(), file.string(), answer.hint());
    }
  }
  check_core(elf, file);
  return elf;
}

boost::dll::shared_library open_library(const fs::path& file, const Note& note) {
  try {
    using namespace boost::dll;
    return shared_library(fs::absolute(file), load_mode::rtld_now | load_mode::rtld_local);
  } catch (const boost::dll::fs::system_error& error) {
    const std::string what = readable(error.what(), file);
    throw Error("found, but does not load: " + what, file.string(),
                missing_hint(what).value_or(rebuild_hint(note, file)));
  }
}

const triax_plugin* ask(const boost::dll::shared_library& library, const fs::path& file) {
  if (!library.has(TRIAX_ENTRY_NAME)) {
    throw Error("is a library, but no triax plugin: it exports no " TRIAX_ENTRY_NAME, file.string(),
                "end its source with TRIAX_PLUGIN(...) and build it with triax_add_plugin()");
  }
  return library.get<const triax_plugin*()>(TRIAX_ENTRY_NAME)();
}

} // namespace

const Library& load(const fs::path& file, std::string_view kind) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  const fs::path key = fs::absolute(file).lexically_normal();
  auto found = loaded.opened.find(key);
  if (found == loaded.opened.end()) {
    const ElfFile elf = read_before_loading(file);
    found = loaded.opened.emplace(key, Opened{open_library(file, elf.note), std::nullopt}).first;
  }
  auto& [library, checked] = found->second;
  if (!checked) {
    const triax_plugin* descriptor = ask(library, file);
    auto options = check_descriptor(descriptor, file);
    checked = Library{key, descriptor, std::move(options)};
  }
  if (!kind.empty()) check_kind(*checked->descriptor, kind, file);
  return *checked;
}

void* create_object(const Library& library, const PluginContext& context) {
  check_kind(*library.descriptor, library.descriptor->kind, library.file);
  char reason[1024] = "";
  triax_error error{reason, sizeof reason};
  const triax_create_args args{sizeof args,
                               0,
                               &context.options,
                               &context.log,
                               &context.layout,
                               static_cast<std::int32_t>(context.rank),
                               static_cast<std::int32_t>(context.threads)};
  void* const object = library.descriptor->create(&args, &error);
  if (object) return object;
  throw Error(text("{} could not be created: {}", library.descriptor->name, *reason ? reason : "it does not say why"),
              library.file.string());
}

} // namespace triax::plugin
