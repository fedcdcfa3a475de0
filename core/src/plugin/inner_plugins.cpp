// SPDX-License-Identifier: Apache-2.0
#include "plugin/inner_plugins.hpp"

#include <utility>

#include "base/printable.hpp"
#include "plugin/did_you_mean.hpp"
#include "plugin/option_text.hpp"

namespace triax::plugin {

namespace {

/// An object, and the options that its context refers to.
struct Created {
  Options options;
  Instance<void> object;
};

const triax_option& required_option(const Library& library, const std::string& key) {
  if (const triax_option* const found = find_option(library, key)) return *found;
  const char* const name = library.descriptor->name;
  std::vector<std::string> known;
  known.reserve(library.options.size());
  for (const triax_option& row : library.options) known.emplace_back(row.name);
  const std::vector<std::string> near = nearest(key, known);
  throw Error(text("{} has no option \"{}\"{}", name, shortened(key),
                   near.empty() ? "" : text("; did you mean \"{}\"?", near.front())),
              {}, text("triax plugins describe {} lists its options", name));
}

void set_option(const Library& library, const std::string& setting, Options& options) {
  const char* const name = library.descriptor->name;
  const std::string hint = text("triax plugins describe {} lists its options", name);
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(text("a setting of {} must be KEY=VALUE, got \"{}\"", name, shortened(setting)), {}, hint);
  const triax_option& option = required_option(library, setting.substr(0, equals));
  try {
    OptionValue value = parse_option(option, std::string_view(setting).substr(equals + 1));
    if (const Refusals wrong = check_option(option, value); !wrong.empty()) throw to_error(wrong);
    options.set(option.name, std::move(value));
  } catch (const Error& error) {
    throw Error(text("{}: {}", name, error.message()), {}, error.hint().empty() ? hint : error.hint());
  }
}

} // namespace

Options read_settings(const Library& library, std::span<const std::string> settings) {
  Options out;
  for (const std::string& setting : settings) set_option(library, setting, out);
  for (const triax_option& option : library.options) {
    if (out.has(option.name)) continue;
    if (!option.default_value)
      throw Error(text("{} requires its option {}: {}", library.descriptor->name, option.name, option.doc), {},
                  text("add the setting {}=VALUE", option.name));
    out.set(option.name, parse_option(option, option.default_value));
  }
  return out;
}

std::shared_ptr<void> InnerPlugins::create(std::string_view kind, std::string_view name,
                                           std::span<const std::string> settings) {
  const Library& library = load(locate(name, folders_.empty() ? search_folders({}) : folders_).file, kind);
  const auto created = std::make_shared<Created>();
  created->options = read_settings(library, settings);
  created->object = plugin::create<void>(
      library, {created->options, outer_.log, outer_.layout, outer_.rank, outer_.threads}, folders_);
  return {created, created->object.get()};
}

} // namespace triax::plugin
