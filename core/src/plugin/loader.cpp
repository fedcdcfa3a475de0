// SPDX-License-Identifier: Apache-2.0
// The only file that includes Boost. Two uses of Boost.DLL 1.74 are deliberate: the throwing overloads, because the
// others drop dlerror's text, and rtld_now, because a symbol missing at the first call would end the process.
#include "plugin/loader.hpp"

#include <algorithm>
#include <array>
#include <boost/dll/shared_library.hpp>
#include <csignal>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/elf_note.hpp"
#include "plugin/missing_symbol.hpp"
#include "plugin/plugin_call.hpp"
#include "plugin/plugin_descriptor.hpp"
#include "plugin/toolchain.hpp"
#include "triax/error.hpp"
#include "triax/toolchain.h"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

struct Opened {
  boost::dll::shared_library library;
  std::optional<Library> checked; // empty: a check failed; the library stays loaded
};

struct Registry {
  std::mutex mutex;
  std::map<fs::path, Opened> opened; // by absolute path; nodes keep their addresses
};

Registry& registry() {
  // Leaked: code of a plugin may run until the end of the process (threads, exit hooks, thrown objects).
  static auto* const leaked = new Registry;
  return *leaked;
}

/// Extracts dlerror's text from Boost's, without the leading path.
std::string dlerror_text(std::string what, const fs::path& file) {
  const std::string before = "(dlerror system message: ", after = "): Bad file descriptor";
  if (const auto at = what.find(before); at != std::string::npos) what.erase(0, at + before.size());
  if (what.ends_with(after)) what.resize(what.size() - after.size());
  if (const std::string path = file.string() + ": "; what.starts_with(path)) what.erase(0, path.size());
  return what;
}

/// "its ELF note names Triax 0.0.9, but this is Triax 0.1.0: rebuild the plugin"; empty for a plugin that was built for
/// this triax.
std::string rebuild_hint(const Note& note) {
  if (note.text.empty())
    return "it has no ELF note with a version of Triax; this is Triax " TRIAX_VERSION ": rebuild the plugin";
  if (note.triax == TRIAX_VERSION) return {};
  return text("its ELF note names Triax {}, but this is Triax {}: rebuild the plugin", note.triax, TRIAX_VERSION);
}

/// GPU libraries are not part of Triax's packages: they are installed on the machine, or the user names their folder.
std::string missing_library_hint(const std::string& library) {
  constexpr const char* kOfGpus[] = {"libcudart.so", "libcublas.so", "libcublasLt.so", "libnccl.so"};
  if (std::ranges::any_of(kOfGpus, [&library](const char* name) { return library.starts_with(name); })) {
    return "put the folders of CUDA's libraries and NCCL's on LD_LIBRARY_PATH; scripts/cuda-libraries finds them "
           "(docs/bundle.md)";
  }
  return text("install {}, put its folder on LD_LIBRARY_PATH, or link the plugin with an rpath to it", library);
}

/// The error of dlopen, with the next step.
Error load_error(const std::string& what, const ElfFile& elf, const fs::path& file) {
  const std::string found = "found, but does not load: ";
  constexpr std::string_view kUndefined = "undefined symbol: ", kMissing = ": cannot open shared object file";
  if (what.starts_with(kUndefined)) {
    const std::string rest = what.substr(kUndefined.size()), symbol = rest.substr(0, rest.find_first_of(", \t"));
    const std::string name = demangled(symbol), rebuild = rebuild_hint(elf.note);
    const bool other_engine = name.starts_with("triax::") && !elf.note.text.empty() && !rebuild.empty();
    return Error(text("{}undefined symbol {}", found, name), file.string(),
                 other_engine ? rebuild : link_hint(symbol, file.stem().string()));
  }
  const auto at = what.find(kMissing);
  return Error(found + what, file.string(),
               at == std::string::npos ? rebuild_hint(elf.note) : missing_library_hint(what.substr(0, at)));
}

/// Checks the core's soname, "libtriax_core.so.0.1". A plugin linked with another core would load that too, with second
/// copies of every class.
void check_core(const ElfFile& elf, const fs::path& file) {
  const std::string prefix = "libtriax_core.so", version = TRIAX_VERSION;
  const std::string ours = prefix + "." + version.substr(0, version.rfind('.'));
  for (const std::string& needed : elf.needed) {
    if (!needed.starts_with(prefix) || needed == ours) continue;
    throw Error(text("it is linked with {}; this triax is {}", needed, ours), file.string(), rebuild_hint(elf.note));
  }
}

ElfFile read_before_loading(const fs::path& file) {
  ElfFile elf = read_elf(file);
  if (!elf.note.toolchain.empty()) {
    const Refusals answer = compatible(elf.note.toolchain, TRIAX_TOOLCHAIN);
    if (!answer.empty()) throw to_error(answer, file.string());
  }
  check_core(elf, file);
  return elf;
}

/// Reports an exception that a library throws while it is loaded or its descriptor is requested.
[[noreturn]] void throw_foreign(const fs::path& file, std::string_view what, const std::exception* error) {
  throw Error(
      text("{} threw {}", what,
           error ? text("an exception: {}", error->what()) : "an unknown exception (not derived from std::exception)"),
      file.string(), "this is a defect of the plugin: nothing may throw before its constructor");
}

/// A library may install signal handlers when it is loaded, as UCX does for SIGHUP. The engine alone decides how a run
/// stops, so the dispositions of these signals are restored.
class KeptStopSignals {
 public:
  KeptStopSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~KeptStopSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  KeptStopSignals(const KeptStopSignals&) = delete;
  KeptStopSignals& operator=(const KeptStopSignals&) = delete;

 private:
  static constexpr std::array<int, 5> kSignals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, kSignals.size()> before_{};
};

boost::dll::shared_library open_library(const fs::path& file, const ElfFile& elf) {
  const KeptStopSignals kept;
  const CallScope call(file.stem().native(), "its library initializer", file);
  try {
    using namespace boost::dll;
    return shared_library(fs::absolute(file), load_mode::rtld_now | load_mode::rtld_local);
  } catch (const boost::dll::fs::system_error& error) {
    throw load_error(dlerror_text(error.what(), file), elf, file);
  } catch (const std::exception& error) {
    throw_foreign(file, "its library initializer", &error);
  } catch (...) {
    throw_foreign(file, "its library initializer", nullptr);
  }
}

const triax_plugin* ask(const boost::dll::shared_library& library, const fs::path& file) {
  if (!library.has(TRIAX_ENTRY_NAME)) {
    throw Error("is a library, but not a triax plugin: it does not export " TRIAX_ENTRY_NAME, file.string(),
                "end its source with TRIAX_PLUGIN(...) and build it with triax_add_plugin()");
  }
  const CallScope call(file.stem().native(), "its entry function", file);
  try {
    return library.get<const triax_plugin*()>(TRIAX_ENTRY_NAME)();
  } catch (const std::exception& error) {
    throw_foreign(file, TRIAX_ENTRY_NAME "()", &error);
  } catch (...) {
    throw_foreign(file, TRIAX_ENTRY_NAME "()", nullptr);
  }
}

} // namespace

const Library& load(const fs::path& file, std::string_view kind) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  const fs::path key = fs::absolute(file).lexically_normal();
  auto found = loaded.opened.find(key);
  if (found == loaded.opened.end()) {
    const ElfFile elf = read_before_loading(file);
    found = loaded.opened.emplace(key, Opened{open_library(file, elf), std::nullopt}).first;
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

bool is_loaded(const fs::path& file) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  return loaded.opened.contains(fs::absolute(file).lexically_normal());
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
  const CallScope call(library.descriptor->name, "its constructor", library.file);
  try {
    void* const object = library.descriptor->create(&args, &error);
    if (object) return object;
  } catch (const std::exception& failure) { // `create` must not throw, but not every author uses TRIAX_PLUGIN
    plugin_detail::report(&error, failure.what());
  } catch (...) {
    plugin_detail::report(&error, "an unknown exception (not derived from std::exception)");
  }
  reason[sizeof reason - 1] = '\0'; // the plugin may have filled all of it
  throw Error(text("{} could not be created: {}", library.descriptor->name, *reason ? reason : "it gives no reason"),
              library.file.string());
}

} // namespace triax::plugin
