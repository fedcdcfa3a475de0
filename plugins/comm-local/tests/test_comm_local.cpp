// comm-local through its door; ranks are threads.
#include <gtest/gtest.h>
