// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include <uct/api/uct.h>

#include <algorithm>
#include <set>
#include <span>

namespace triax::comm_ucx {

namespace {

using Resources = std::span<const uct_tl_resource_desc_t>;

/// Calls use(resources) for each memory domain of a component.
template <class Use>
void each_domain(uct_component_h component, const char* md_name, Use use) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h md = nullptr;
  const ucs_status_t opened = uct_md_open(component, md_name, config, &md);
  uct_config_release(config);
  if (opened != UCS_OK) return;
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(md, &resources, &count) == UCS_OK) {
    use(Resources(resources, count));
    uct_release_tl_resource_list(resources);
  }
  uct_md_close(md);
}

template <class Use>
void each_resource(Use use) {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return;
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t sizes{};
    sizes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(components[i], &sizes) != UCS_OK) continue;
    std::vector<uct_md_resource_desc_t> domains(sizes.md_resource_count);
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (uct_component_query(components[i], &attributes) != UCS_OK) continue;
    for (const uct_md_resource_desc_t& domain : domains)
      each_domain(components[i], domain.md_name,
                  [&use](Resources resources) { std::ranges::for_each(resources, use); });
  }
  uct_release_component_list(components);
}

} // namespace

std::vector<std::string> network_devices() {
  std::set<std::string> out;
  each_resource([&out](const uct_tl_resource_desc_t& resource) {
    if (resource.dev_type == UCT_DEVICE_TYPE_NET) out.insert(resource.dev_name);
  });
  return {out.begin(), out.end()};
}

std::vector<std::string> available_transports() {
  std::set<std::string> out;
  each_resource([&out](const uct_tl_resource_desc_t& resource) { out.insert(resource.tl_name); });
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

} // namespace triax::comm_ucx
