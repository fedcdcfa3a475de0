// SPDX-License-Identifier: Apache-2.0
#include "plugins/suite_plugins.hpp"

#include <filesystem>
#include <memory>
#include <vector>

#include "plugin/option_text.hpp"
#include "plugin/probe.hpp"
#include "plugins/locate_plugin.hpp"
#include "plugins/suite_object.hpp"

namespace triax::app {

namespace {

const plugin::Library& load_for_suite(const std::string& name, const std::vector<std::string>& folders,
                                      const char* kind) {
  const std::filesystem::path file = std::filesystem::absolute(locate_plugin(name, folders).file);
  const auto failures = plugin::probe_loading(std::vector{file});
  if (!failures.empty())
    throw Error(failures.begin()->second.reason(), file.string(), failures.begin()->second.hint(file));
  return plugin::load(file, kind);
}

std::shared_ptr<const Options> defaults_of(const plugin::Library& library) {
  const auto out = std::make_shared<Options>();
  for (const triax_option& option : library.options) {
    if (!option.default_value)
      throw Error(text("its option {} has no default", option.name), library.file.string(),
                  "use a plugin whose options have defaults");
    out->set(option.name, plugin::parse_option(option, option.default_value));
  }
  return out;
}

} // namespace

std::function<conformance::Object<KernelSet>()> kernels_of_suite(const std::string& name,
                                                                 const std::vector<std::string>& folders) {
  const plugin::Library& library = load_for_suite(name, folders, KernelSet::kKind);
  return [&library, options = defaults_of(library)] { return create_for_suite<KernelSet>(library, *options); };
}

std::function<conformance::Object<KernelSet>()> kernels_of_flag(const std::string& name,
                                                                const std::vector<std::string>& folders,
                                                                Refusals& refusals) {
  try {
    return kernels_of_suite(name, folders);
  } catch (const Error& error) {
    const std::string where = error.where().empty() ? "" : error.where() + ": ";
    refusals.add({ErrorCode::kUnknownPlugin,
                  {"--kernels"},
                  text("--kernels {}: {}{}", name, where, error.message()),
                  error.hint()});
    return {};
  }
}

std::function<conformance::Object<CommBackend>(const PluginContext&)> backend_of_suite(
    const std::string& name, const std::vector<std::string>& folders) {
  const plugin::Library& library = load_for_suite(name, folders, CommBackend::kKind);
  return [&library, options = defaults_of(library)](const PluginContext& context) {
    return create_for_suite<CommBackend>(
        library, PluginContext{*options, context.log, context.layout, context.rank, context.threads});
  };
}

} // namespace triax::app
