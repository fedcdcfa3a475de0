// SPDX-License-Identifier: Apache-2.0
// --set, for subcommands that read a run's TOML.
#include "common/list_option.hpp"
#include "common/verbs.hpp"

namespace triax::app {

void add_overrides(CLI::App& verb, std::vector<config::Override>& overrides) {
  const auto read = [&overrides](const std::vector<std::string>& flags) {
    for (const std::string& flag : flags) {
      const std::size_t equals = flag.find('=');
      overrides.push_back({flag.substr(0, equals), flag.substr(equals + 1)});
    }
    return true;
  };
  const auto well_formed = [](const std::string& flag) {
    const std::size_t equals = flag.find('=');
    const std::string key = "." + flag.substr(0, equals) + ".";
    const bool good = equals != std::string::npos && key.find("..") == std::string::npos;
    return good ? std::string() : "must be TABLE.KEY=VALUE, got \"" + flag + "\"";
  };
  repeated(verb.add_option_function<std::vector<std::string>>("--set", read, "sets a key of the TOML to another value")
               ->type_name("TABLE.KEY=VALUE")
               ->check(CLI::Validator(well_formed, {})));
}

} // namespace triax::app
