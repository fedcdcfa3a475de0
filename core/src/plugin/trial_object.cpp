// SPDX-License-Identifier: Apache-2.0
#include "plugin/trial_object.hpp"

#include "plugin/option_text.hpp"

namespace triax::plugin {

TrialObject try_object(const Library& library) {
  TrialObject out;
  Options options;
  for (const triax_option& option : library.options) {
    if (option.default_value) {
      options.set(option.name, parse_option(option, option.default_value));
    } else {
      out.unset.emplace_back(option.name);
    }
  }
  const Layout layout = Layout::ptd(1, 1, 1);
  try {
    create<void>(library, PluginContext{options, null_log(), layout});
  } catch (const Error& error) {
    out.error = error;
  }
  return out;
}

} // namespace triax::plugin
