#include "config/values.hpp"

#include <utility>

#include "plugin/option_text.hpp"

namespace triax::config {

void Values::set(const std::string& key, OptionValue value, std::string_view origin, const Position& at) {
  items_[key] = {std::move(value), at.file.empty() ? std::string(origin) : to_text(at), at};
}

Position Values::at(const std::string& key) const {
  const auto item = items_.find(key);
  return item == items_.end() ? Position{} : item->second.at;
}

std::vector<ResolvedValue> Values::list() const {
  std::vector<ResolvedValue> out;
  for (const std::string& key : order_) {
    const auto item = items_.find(key);
    if (item != items_.end()) out.push_back({key, plugin::to_toml(item->second.value), item->second.origin});
  }
  return out;
}

} // namespace triax::config
