// SPDX-License-Identifier: Apache-2.0
// The only file that includes Boost. Two uses of Boost.DLL 1.74 are deliberate: the throwing overloads, because the
// others drop dlerror's text, and rtld_now, because a symbol missing at the first call would end the process.
#include "plugin/loader.hpp"

#include <dlfcn.h>

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
#include "plugin/inner_plugins.hpp"
#include "plugin/missing_symbol.hpp"
#include "plugin/plugin_call.hpp"
#include "plugin/plugin_descriptor.hpp"
#include "plugin/rejection.hpp"
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
  std::map<fs::path, Error> rejected;
};

Registry& registry() {
  // Leaked: code of a plugin may run until the end of the process (threads, exit hooks, thrown objects).
  static auto* const leaked = new Registry;
  return *leaked;
}

fs::path key_of(const fs::path& file) {
  return fs::absolute(file).lexically_normal();
}

/// Extracts dlerror's text from Boost's, without the leading path.
std::string dlerror_text(std::string what, const fs::path& file) {
  const std::string before = "(dlerror system message: ", after = "): Bad file descriptor";
  if (const auto at = what.find(before); at != std::string::npos) what.erase(0, at + before.size());
  if (what.ends_with(after)) what.resize(what.size() - after.size());
  if (const std::string path = file.string() + ": "; what.starts_with(path)) what.erase(0, path.size());
  return what;
}

/// For "/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by ./x.so)"; else empty.
std::string too_new_hint(const std::string& what) {
  const std::size_t at = what.find(": version `"), end = what.find("' not found", at);
  if (at == std::string::npos || end == std::string::npos) return {};
  const std::string library = fs::path(what.substr(0, at)).filename().string();
  return text(
      "the plugin was linked with a newer {} than this machine has: build it on this machine, or install that {}",
      library, library);
}

/// The error of dlopen, with the next step.
Error load_error(const std::string& what, const ElfFile& elf, const fs::path& file) {
  const std::string found = "found, but does not load: ";
  constexpr std::string_view kUndefined = "undefined symbol: ", kMissing = ": cannot open shared object file";
  if (what.starts_with(kUndefined)) {
    const std::string rest = what.substr(kUndefined.size()), symbol = rest.substr(0, rest.find_first_of(", \t"));
    return Error(
        text("{}undefined symbol {}", found, demangled(symbol)), file.string(),
        is_of_other_engine(symbol, elf.note) ? rebuild_hint(elf.note) : link_hint(symbol, file.stem().string()));
  }
  const auto at = what.find(kMissing);
  if (at != std::string::npos) return Error(found + what, file.string(), missing_library_hint(what.substr(0, at)));
  std::string hint = too_new_hint(what);
  if (hint.empty()) hint = rebuild_hint(elf.note);
  if (hint.empty()) hint = text("triax plugins doctor {} examines it", file.string());
  return Error(found + what, file.string(), hint);
}

ElfFile read_before_loading(const fs::path& file) {
  ElfFile elf = read_elf(file);
  if (const Refusals answer = check_note(elf); !answer.empty()) throw to_error(answer, file.string());
  if (const Refusals answer = check_core(elf); !answer.empty()) throw to_error(answer, file.string());
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

/// Loads a library whose initializers may throw. glibc declares dlopen noexcept, so an exception that passes through a
/// direct call can end the process, in Boost as well; after this one Boost only finds what is loaded, or fails again.
void run_initializers(const fs::path& file) {
  void* (*const volatile open)(const char*, int) = &dlopen; // volatile: the compiler must not see whose address it is
  open(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

boost::dll::shared_library open_library(const fs::path& file, const ElfFile& elf) {
  const KeptStopSignals kept;
  const CallScope call(file.stem().native(), "its library initializer", file);
  try {
    using namespace boost::dll;
    run_initializers(fs::absolute(file));
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

Refusals check_note(const ElfFile& elf) {
  return elf.note.toolchain.empty() ? Refusals() : compatible(elf.note.toolchain, TRIAX_TOOLCHAIN);
}

std::string core_soname(std::string_view version) {
  const std::string_view major = version.substr(0, version.find('.'));
  const std::string_view minor = version.substr(0, version.rfind('.'));
  return text("libtriax_core.so.{}", major == "0" ? minor : major);
}

Refusals check_core(const ElfFile& elf) {
  const std::string ours = core_soname(TRIAX_VERSION);
  Refusals out;
  for (const std::string& needed : elf.needed) {
    if (!needed.starts_with("libtriax_core.so") || needed == ours) continue;
    const std::string hint = rebuild_hint(elf.note);
    out.add(make_refusal(ErrorCode::kIncompatible, {}, "it is linked with {}; this triax is {}", needed, ours)
                .with_hint("{}", hint.empty() ? "rebuild it against this triax" : hint));
  }
  return out;
}

namespace {

/// The registry must be locked.
Opened& open_once(Registry& loaded, const fs::path& file) {
  const fs::path key = key_of(file);
  const auto found = loaded.opened.find(key);
  if (found != loaded.opened.end()) return found->second;
  if (const auto rejected = loaded.rejected.find(key); rejected != loaded.rejected.end()) throw rejected->second;
  const ElfFile elf = read_before_loading(file);
  return loaded.opened.emplace(key, Opened{open_library(file, elf), std::nullopt}).first->second;
}

} // namespace

const Library& load(const fs::path& file, std::string_view kind) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  auto& [library, checked] = open_once(loaded, file);
  if (!checked) {
    const triax_plugin* descriptor = ask(library, file);
    auto options = check_descriptor(descriptor, file);
    checked = Library{key_of(file), descriptor, std::move(options)};
  }
  if (!kind.empty()) check_kind(*checked->descriptor, kind, file);
  return *checked;
}

void load_unchecked(const fs::path& file) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  open_once(loaded, file);
}

const triax_plugin* unchecked_descriptor(const fs::path& file) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  return ask(open_once(loaded, file).library, file);
}

bool is_loaded(const fs::path& file) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  return loaded.opened.contains(key_of(file));
}

void reject(const fs::path& file, const Error& error) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  loaded.rejected.insert_or_assign(key_of(file), error);
}

bool is_rejected(const fs::path& file) {
  Registry& loaded = registry();
  const std::lock_guard lock(loaded.mutex);
  return loaded.rejected.contains(key_of(file));
}

const triax_option* find_option(const Library& library, std::string_view name) {
  const auto found = std::ranges::find_if(library.options, [&](const triax_option& row) { return name == row.name; });
  return found == library.options.end() ? nullptr : &*found;
}

void Destroyer::operator()(void* object) const noexcept {
  const CallScope call(library_ ? library_->descriptor->name : "", "its destructor",
                       library_ ? library_->file : fs::path());
  destroy_(object);
}

void* create_object(const Library& library, const PluginContext& context, const std::vector<SearchFolder>& folders) {
  check_kind(*library.descriptor, library.descriptor->kind, library.file);
  char reason[1024] = "";
  triax_error error{reason, sizeof reason};
  InnerPlugins loader(context, folders);
  const triax_create_args args{sizeof args,
                               0,
                               &context.options,
                               &context.log,
                               &context.layout,
                               static_cast<std::int32_t>(context.rank),
                               static_cast<std::int32_t>(context.threads),
                               static_cast<PluginLoader*>(&loader)};
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
  const std::string said = *reason ? reason : "it gives no reason";
  const std::size_t hint = said.find("\n  "); // hint of an Error that the constructor threw
  throw Error(text("{} could not be created: {}", library.descriptor->name, said.substr(0, hint)),
              library.file.string(),
              hint == std::string::npos
                  ? text("change its options, which triax plugins describe {} lists, or report this to its author",
                         library.descriptor->name)
                  : said.substr(hint + 3));
}

} // namespace triax::plugin
