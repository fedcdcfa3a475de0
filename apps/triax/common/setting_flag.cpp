// SPDX-License-Identifier: Apache-2.0
#include "common/setting_flag.hpp"

#include "common/list_option.hpp"

namespace triax::app {

void add_settings(CLI::App& verb, const char* flag, std::vector<config::Override>& settings, const std::string& doc,
                  const std::string& table) {
  const auto read = [flag, &settings](const std::vector<std::string>& written) {
    for (const std::string& setting : written) {
      const std::size_t equals = setting.find('=');
      settings.push_back({setting.substr(0, equals), setting.substr(equals + 1), flag});
    }
    return true;
  };
  const auto well_formed = [table](const std::string& setting) {
    const bool any_table = table == kAnyTable && setting.find('.') < setting.find('=');
    const bool good = (any_table || setting.starts_with(table + ".")) && setting.find('=') != std::string::npos;
    return good ? std::string() : "must be " + table + ".KEY=VALUE, got \"" + setting + "\"";
  };
  repeated(verb.add_option_function<std::vector<std::string>>(flag, read, doc)
               ->type_name(table + ".KEY=VALUE")
               ->check(CLI::Validator(well_formed, {})));
}

} // namespace triax::app
