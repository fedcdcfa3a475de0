#include "config/folder_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "triax/text.hpp"

namespace triax::config {

std::string why_not_writable(const std::filesystem::path& folder) {
  std::filesystem::path nearest = folder; // that is there
  struct stat status {};
  while (::stat(nearest.c_str(), &status) != 0) {
    const int why = errno;
    if (::lstat(nearest.c_str(), &status) == 0 && why == ENOENT) return text("{} is a link to nothing", nearest);
    const bool above = (why == ENOENT || why == ENOTDIR) && nearest.has_relative_path();
    if (!above) return text("{}: {}", nearest, std::generic_category().message(why));
    nearest = nearest.parent_path();
  }
  if (!S_ISDIR(status.st_mode)) return text("{} is a file, not a folder", nearest);
  if (::faccessat(AT_FDCWD, nearest.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  return text("{}: {}", nearest, std::generic_category().message(errno));
}

} // namespace triax::config
