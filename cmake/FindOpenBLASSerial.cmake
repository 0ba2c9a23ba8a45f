# OpenBLAS without threads as a static, position independent archive (Debian: libopenblas-serial-dev), never by
# SONAME: the alternatives system may hand a host the threaded one. Target OpenBLASSerial::OpenBLASSerial.
find_path(OpenBLASSerial_INCLUDE_DIR cblas.h
  PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial /usr/include/openblas-serial NO_DEFAULT_PATH)
find_file(OpenBLASSerial_ARCHIVE libopenblas.a
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial /usr/lib64/openblas-serial /usr/lib/openblas-serial NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLASSerial
  REQUIRED_VARS OpenBLASSerial_ARCHIVE OpenBLASSerial_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libopenblas-serial-dev")
if(OpenBLASSerial_FOUND AND NOT TARGET OpenBLASSerial::OpenBLASSerial)
  add_library(OpenBLASSerial::OpenBLASSerial STATIC IMPORTED GLOBAL)
  set_target_properties(OpenBLASSerial::OpenBLASSerial PROPERTIES
    IMPORTED_LOCATION ${OpenBLASSerial_ARCHIVE} INTERFACE_INCLUDE_DIRECTORIES ${OpenBLASSerial_INCLUDE_DIR})
endif()
mark_as_advanced(OpenBLASSerial_INCLUDE_DIR OpenBLASSerial_ARCHIVE)
