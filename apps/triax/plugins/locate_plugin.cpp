// SPDX-License-Identifier: Apache-2.0
#include "plugins/locate_plugin.hpp"

#include <filesystem>
#include <system_error>

#include "triax/error.hpp"

namespace triax::app {

std::vector<plugin::SearchFolder> folders_to_search(const std::vector<std::string>& given) {
  std::vector<plugin::SearchFolder> out;
  out.reserve(given.size());
  for (const auto& folder : given) out.push_back({folder, "--path"});
  return plugin::search_folders(out);
}

plugin::Found locate_plugin(const std::string& given, const std::vector<std::string>& folders) {
  return plugin::locate(given, folders_to_search(folders), {}, plugin::FolderChoice::flag);
}

} // namespace triax::app
