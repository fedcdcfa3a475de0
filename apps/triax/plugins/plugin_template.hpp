// SPDX-License-Identifier: Apache-2.0
// The templates of plugins: folders of files that build, load and train as they are (templates/ of the source tree). A
// plugin is a copy in which the template's name, such as sched-template, is replaced.
//
// Blocking: reads and writes files. Errors: Error.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace triax::app {

/// share/triax/templates beside the folder of libtriax_core, in an installation and in a build folder.
std::filesystem::path templates_folder();

/// The name that a template has in its files: "sched-template" for names that begin with "sched-".
std::string template_name(std::string_view prefix);

/// A copy of template `folder` with `name` in place of `old_name`, and with underscores in place of its dashes where
/// the template has a C++ name. `destination` must not exist; after an error it does not. Returns the files, sorted, as
/// paths relative to it.
std::vector<std::filesystem::path> copy_template(const std::filesystem::path& folder, const std::string& old_name,
                                                 const std::string& name, const std::filesystem::path& destination);

} // namespace triax::app
