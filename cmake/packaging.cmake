# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` adds to the program and its headers, and the Debian package (./dev package).
# Presets and figures are within the program.
set(examples ${CMAKE_INSTALL_DATADIR}/trainyard)
install(DIRECTORY data examples DESTINATION ${examples} USE_SOURCE_PERMISSIONS
        PATTERN build EXCLUDE PATTERN __pycache__ EXCLUDE)
install(FILES experiments/example.toml DESTINATION ${examples}/experiments)
# The client library in Python and C++.
install(DIRECTORY python/trainyard DESTINATION lib/python3/dist-packages
        PATTERN __pycache__ EXCLUDE)
install(DIRECTORY workloads DESTINATION ${examples} PATTERN __pycache__ EXCLUDE PATTERN tests EXCLUDE)
install(FILES client/cpp/trainyard_job.h DESTINATION include/trainyard/client)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES packaging/trainyard-controller.service packaging/trainyard-agent.service DESTINATION lib/systemd/system)
# The program by the names of Slurm's commands, apart from the path.
install(CODE [[
  set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/trainyard/slurm")
  file(MAKE_DIRECTORY "${folder}")
  foreach(name sacct salloc sbatch scancel scontrol sinfo squeue srun sstat)
    file(CREATE_LINK ../../../bin/trainyard "${folder}/${name}" SYMBOLIC)
  endforeach()
]])
# Manual pages and completion are what the program says of itself.
install(CODE [[
  set(share "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share")
  set(trainyard "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/trainyard")
  file(MAKE_DIRECTORY "${share}/bash-completion/completions" "${share}/zsh/vendor-completions")
  execute_process(COMMAND "${trainyard}" manual "${share}/man/man1" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB pages "${share}/man/man1/trainyard*.1")
  execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${trainyard}" completion bash
                  OUTPUT_FILE "${share}/bash-completion/completions/trainyard" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${trainyard}" completion zsh
                  OUTPUT_FILE "${share}/zsh/vendor-completions/_trainyard" COMMAND_ERROR_IS_FATAL ANY)
]])

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Trainyard maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "scheduler for deep-learning training on GPU clusters")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "One engine holds the published scheduling policies; the same policy code runs on
 recorded traces, exact and reproducible, and live on real machines.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# useradd, in postinst.
set(CPACK_DEBIAN_PACKAGE_DEPENDS passwd)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/postinst ${PROJECT_SOURCE_DIR}/packaging/prerm
  ${PROJECT_SOURCE_DIR}/packaging/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
# Figures of `reproduce`; trainers.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "curl, gnuplot-nox, python3, rsync")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
# Built before, by its own target (scripts/package.sh).
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(CPack)
