#include "devices.hpp"

#include <uct/api/uct.h>

#include <algorithm>
#include <set>

namespace comm_ucx {

namespace {

void add_devices(uct_component_h component, const char* md_name, std::set<std::string>& out) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h md = nullptr;
  const ucs_status_t opened = uct_md_open(component, md_name, config, &md);
  uct_config_release(config);
  if (opened != UCS_OK) return;
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(md, &resources, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i)
      if (resources[i].dev_type == UCT_DEVICE_TYPE_NET) out.insert(resources[i].dev_name);
    uct_release_tl_resource_list(resources);
  }
  uct_md_close(md);
}

} // namespace

std::vector<std::string> network_devices() {
  std::set<std::string> out;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return {};
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t sizes{};
    sizes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(components[i], &sizes) != UCS_OK) continue;
    std::vector<uct_md_resource_desc_t> resources(sizes.md_resource_count);
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = resources.data();
    if (uct_component_query(components[i], &attributes) != UCS_OK) continue;
    for (const uct_md_resource_desc_t& md : resources) add_devices(components[i], md.md_name, out);
  }
  uct_release_component_list(components);
  return {out.begin(), out.end()};
}

std::vector<std::string> unknown_devices(const std::string& list, const std::vector<std::string>& known) {
  std::vector<std::string> out;
  if (list.empty() || list.front() == '^') return out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const std::string& device) {
      return device == name || device.starts_with(name + ":");
    });
    if (name != "all" && !name.empty() && !is_known) out.push_back(name);
  }
  return out;
}

} // namespace comm_ucx
