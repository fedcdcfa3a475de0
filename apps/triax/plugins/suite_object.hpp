// SPDX-License-Identifier: Apache-2.0
// Objects of a loaded plugin, as the subjects of conformance suites need them.
//
// Threads: any. Ownership: the object's deleter calls the plugin. Blocking: as the constructor does. Errors: Error with
// the plugin's message.
#pragma once

#include "plugin/loader.hpp"
#include "triax/conformance/rank.hpp"

namespace triax::app {

/// The context must outlive the object. Its constructor and its destructor have a deadline in a probe process.
template <class Interface>
conformance::Object<Interface> create_for_suite(const plugin::Library& library, const PluginContext& context,
                                                const std::vector<plugin::SearchFolder>& folders = {}) {
  plugin::Instance<Interface> made = plugin::create<Interface>(library, context, folders);
  const auto destroy = made.get_deleter();
  return {made.release(), [destroy](Interface* object) { destroy(object); }};
}

/// For plugins of one rank. `options` must outlive the object.
template <class Interface>
conformance::Object<Interface> create_for_suite(const plugin::Library& library, const Options& options) {
  static const Layout one_rank = Layout::ptd(1, 1, 1);
  return create_for_suite<Interface>(library, PluginContext{options, null_log(), one_rank, 0, 1});
}

} // namespace triax::app
