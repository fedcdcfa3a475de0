#include "config/plugin_tables.hpp"

#include "triax/error.hpp"

namespace triax::config {

namespace {

struct KindWords {
  std::string_view kind, prefix;
  const char *one, *many;
};

constexpr KindWords kKinds[] = {
    {"communicator", "comm-", "a communicator", "communicators"}, {"scheduler", "sched-", "a scheduler", "schedulers"},
    {"kernels", "kernels-", "a kernel set", "kernel sets"},       {"model", "model-", "a model", "models"},
    {"optimizer", "optim-", "an optimizer", "optimizers"},
};

const KindWords& words(std::string_view kind) {
  for (const KindWords& words : kKinds) {
    if (words.kind == kind) return words;
  }
  throw Error(text("unknown kind of plugin: {}", kind));
}

} // namespace

const plugin::Library* PluginFinder::find(const CoreTable& table, const std::string& name, const Position& at) {
  const std::string key = text("{}.plugin \"{}\"", table.name, name);
  std::filesystem::path file;
  try {
    file = plugin::find(name, folders_);
  } catch (const Error& error) {
    const std::string whole = text("{}{}", words(table.kind).prefix, name); // "adamw" for optim-adamw
    const std::string meant = names(table.kind).count(whole) != 0 ? text("; did you mean \"{}\"?", whole) : "";
    const std::string hint = text("{}\n  {}", error.hint(), installed(table.kind));
    refusals_.add(at, text("{}.{}{}", table.name, error.message(), meant), hint);
    return nullptr;
  }
  try {
    const plugin::Library& library = plugin::load(file, "");
    const std::string_view kind = library.descriptor->kind;
    if (kind == table.kind) return &library;
    refusals_.add(at, text("{} is {}, not {}", key, words(kind).one, words(table.kind).one), installed(table.kind));
  } catch (const Error& error) {
    refusals_.add(at, text("{} cannot be used: {}", key, error.what()));
  }
  return nullptr;
}

std::set<std::string> PluginFinder::names(std::string_view kind) const {
  std::set<std::string> out;
  for (const plugin::SearchFolder& folder : folders_) {
    for (const std::filesystem::path& file : plugin::candidates(folder.folder)) {
      const std::string name = file.stem().string();
      if (name.starts_with(words(kind).prefix)) out.insert(name);
    }
  }
  return out;
}

std::string PluginFinder::installed(std::string_view kind) const {
  std::string out;
  for (const std::string& name : names(kind)) out.append(out.empty() ? "" : ", ").append(name);
  return text("installed {}: {}", words(kind).many, out.empty() ? "none" : out);
}

} // namespace triax::config
