// SPDX-License-Identifier: Apache-2.0
// The changes between two versions of a plugin interface, from docs/plugins/changelog.md, which the build embeds.
//
// Threads: any. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triax::doctor {

struct InterfaceChange {
  std::uint32_t version = 0; // the first with the change
  std::string text;          // its first sentence
};

/// The changes of `kind` in versions above `from`, up to `to`, in the order of the page. A heading such as
/// `### scheduler 2, model 4` says which versions of which kinds have the changes below it; a change is an item of a
/// list.
std::vector<InterfaceChange> interface_changes(std::string_view kind, std::uint32_t from, std::uint32_t to);
/// The same, from another text.
std::vector<InterfaceChange> interface_changes(std::string_view page, std::string_view kind, std::uint32_t from,
                                               std::uint32_t to);

} // namespace triax::doctor
