// SPDX-License-Identifier: Apache-2.0
#include "config/values.hpp"

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "plugin/option_text.hpp"

namespace triax::config {

namespace {

template <class Held>
bool valid(const Held&) {
  return true;
}
bool valid(const std::string& text) {
  return is_utf8(text);
}
bool valid(const std::filesystem::path& path) {
  return is_utf8(path.native());
}
template <class Element>
bool valid(const std::vector<Element>& list) {
  return std::all_of(list.begin(), list.end(), [](const Element& element) { return valid(element); });
}

using Path = std::filesystem::path;

/// Relative to `folder`; "." is the folder itself. A path outside stays absolute.
Path within(const Path& folder, const Path& path) {
  if (folder.empty() || path.empty()) return path;
  const Path relative = path.lexically_relative(folder);
  return relative.empty() || *relative.begin() == ".." ? path : relative;
}

/// The value for a file in `folder`.
OptionValue portable(OptionValue value, const Path& folder) {
  if (auto* path = std::get_if<Path>(&value)) *path = within(folder, *path);
  if (auto* paths = std::get_if<std::vector<Path>>(&value)) {
    for (Path& path : *paths) path = within(folder, path);
  }
  return value;
}

} // namespace

void Values::set(const std::string& key, OptionValue value, std::string_view origin, const Position& at) {
  items_[key] = {std::move(value), at.file.empty() ? std::string(origin) : to_text(at), at};
}

Position Values::at(const std::string& key) const {
  const auto item = items_.find(key);
  return item == items_.end() ? Position{} : item->second.at;
}

std::vector<ResolvedValue> Values::list() const {
  std::vector<ResolvedValue> out;
  const auto* dir = find<Path>("run.dir");
  const Path folder = dir ? *dir : Path();
  for (const std::string& key : order_) {
    const auto item = items_.find(key);
    if (item == items_.end()) continue;
    const OptionValue& value = item->second.value;
    out.push_back(
        {key, plugin::to_toml(value), item->second.origin, plugin::to_toml(portable(value, folder)), item->second.at});
  }
  return out;
}

std::vector<std::string> Values::not_utf8() const {
  std::vector<std::string> out;
  for (const std::string& key : order_) {
    const auto item = items_.find(key);
    if (item == items_.end()) continue;
    if (!std::visit([](const auto& held) { return valid(held); }, item->second.value)) out.push_back(key);
  }
  return out;
}

} // namespace triax::config
