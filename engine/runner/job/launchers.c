#include "launchers.h"

#include <stddef.h>

/* What lacks here costs little: a word that is an existing file is looked for then. */
/* clang-format off */
const launcher launchers[] = {
  /* interpreters */
  {.names = "python* pypy* ipython*", .script = true, .letters = true,
   .values = "-W -X -Q --check-hash-based-pycs", .modules = "-m", .codes = "-c"},
  {.names = "sh bash dash zsh ksh", .script = true, .shell = true, .letters = true,
   .values = "-o +o -O +O --rcfile --init-file", .codes = "-c"},
  {.names = "perl", .script = true, .values = "-I -M", .codes = "-e -E"},
  {.names = "ruby", .script = true, .values = "-I -r", .codes = "-e"},
  {.names = "node nodejs", .script = true, .values = "-r --require --import", .codes = "-e --eval"},
  {.names = "lua* luajit*", .script = true, .values = "-l -j -O", .codes = "-e"},
  {.names = "julia", .script = true,
   .values = "-p --procs -t --threads -J --sysimage -L --load -H --home", .codes = "-e --eval"},
  {.names = "Rscript", .script = true, .codes = "-e"},
  {.names = "java", .script = true, .values = "-cp -classpath --class-path -p --module-path"},
  /* what starts copies of a script */
  {.names = "torchrun torch.distributed.run torch.distributed.launch", .script = true,
   .modules = "-m --module",
   .values = "--nnodes --nproc-per-node --nproc_per_node --nproc --rdzv-backend --rdzv_backend "
             "--rdzv-endpoint --rdzv_endpoint --rdzv-id --rdzv_id --rdzv-conf --rdzv_conf "
             "--max-restarts --max_restarts --monitor-interval --monitor_interval --start-method "
             "--start_method --role --log-dir --log_dir -r --redirects -t --tee --node-rank "
             "--node_rank --master-addr --master_addr --master-port --master_port --local-addr "
             "--local_addr --local-ranks-filter --local_ranks_filter --logs-specs --logs_specs"},
  {.names = "accelerate", .verb = "launch", .script = true, .modules = "-m --module",
   .values = "--config_file --config-file --num_processes --num-processes --num_machines "
             "--num-machines --machine_rank --machine-rank --main_process_ip --main-process-ip "
             "--main_process_port --main-process-port --mixed_precision --mixed-precision "
             "--gpu_ids --gpu-ids --num_cpu_threads_per_process --num-cpu-threads-per-process "
             "--dynamo_backend --dynamo-backend --dynamo_mode --deepspeed_config_file "
             "--deepspeed-config-file --zero_stage --zero-stage --offload_optimizer_device "
             "--offload_param_device --gradient_accumulation_steps --gradient-accumulation-steps "
             "--gradient_clipping --deepspeed_hostfile --deepspeed_multinode_launcher "
             "--deepspeed_exclusion_filter --deepspeed_inclusion_filter --fsdp_sharding_strategy "
             "--fsdp_version --fsdp_auto_wrap_policy --fsdp_state_dict_type --rdzv_backend "
             "--rdzv_conf --max_restarts --monitor_interval --same_network --role --log_dir"},
  {.names = "accelerate.commands.launch", .script = true, .modules = "-m --module",
   .values = "--config_file --num_processes --num_machines --machine_rank --main_process_ip "
             "--main_process_port --mixed_precision --gpu_ids --zero_stage"},
  {.names = "deepspeed deepspeed.launcher.runner", .script = true, .modules = "--module",
   .values = "-H --hostfile -i --include -e --exclude --num_nodes --num_gpus --min_elastic_nodes "
             "--max_elastic_nodes --master_port --master_addr --node_rank --launcher "
             "--launcher_args --ssh_port --bind_core_list --elastic_training"},
  {.names = "composer", .script = true, .modules = "-m --module_mode",
   .values = "-n --nproc --stdout --stderr --world_size --base_rank --node_rank --master_addr "
             "--master_port"},
  {.names = "colossalai", .verb = "run", .script = true, .modules = "-m",
   .values = "-H --host --hostfile --include --exclude --num_nodes --nproc_per_node --master_port "
             "--master_addr --ssh-port --extra_launch_args"},
  {.names = "horovodrun",
   .values = "-np --num-proc -H --hosts -hostfile --hostfile -p --ssh-port --network-interfaces "
             "--min-np --max-np --host-discovery-script --log-level --config-file "
             "--start-timeout --output-filename --fusion-threshold-mb"},
  /* what starts any command, many times or elsewhere */
  {.names = "mpirun mpiexec mpiexec.hydra orterun prterun",
   .pairs = "-mca --mca -gmca --gmca -genv -env --genv --env",
   .values = "-n -np --np -c -H -host --host -hosts --hosts -hostfile --hostfile -machinefile "
             "--machinefile -f -x -wdir --wdir -wd --wd -path --path -map-by --map-by -bind-to "
             "--bind-to -rank-by --rank-by -ppn --ppn -perhost -N -npernode --npernode "
             "-output-filename --output-filename -genvlist -envlist -iface -launcher -bootstrap "
             "-prefix --prefix -tune --tune -am --am"},
  {.names = "srun",
   .values = "-n --ntasks -N --nodes -c --cpus-per-task -p --partition -A --account -J --job-name "
             "-o --output -e --error -i --input -t --time -w --nodelist -x --exclude -G --gpus "
             "-m --distribution -D --chdir -d --dependency -q --qos -C --constraint -W --wait "
             "-r --relative -T --threads --gres --mem --mem-per-cpu --mem-per-gpu --ntasks-per-node "
             "--gpus-per-node --gpus-per-task --cpu-bind --gpu-bind --mpi --export --jobid "
             "--het-group --reservation --signal --container-image --container-mounts "
             "--container-workdir --container-name --network --hint --kill-on-bad-exit -K -L"},
  {.names = "jsrun", .values = "-n --nrs -r --rs_per_host -a --tasks_per_rs -c --cpu_per_rs -g "
                               "--gpu_per_rs -b --bind -d --launch_distribution -E --env"},
  {.names = "aprun", .values = "-n -N -d -S -cc -L"},
  {.names = "flux", .verb = "run", .values = "-n --ntasks -N --nodes -c --cores-per-task -g "
                                              "--gpus-per-task -t --time-limit -q --queue"},
  /* environments */
  {.names = "env", .values = "-u --unset -C --chdir", .assigns = true},
  {.names = "uv", .verb = "run", .modules = "-m --module",
   .values = "--with --with-editable --with-requirements --extra --no-extra --group --no-group "
             "--only-group --env-file -p --python --project --directory --package --index "
             "--index-url --extra-index-url -i -f --find-links --cache-dir --config-file --color "
             "-P --upgrade-package --refresh-package --python-platform -C --config-setting"},
  {.names = "conda mamba micromamba", .verb = "run",
   .values = "-n --name -p --prefix --cwd -e --env -r --root-prefix"},
  {.names = "poetry pdm pipenv rye hatch", .verb = "run",
   .values = "-C --directory -P --project -p -e --env --python"},
  {.names = "pixi", .verb = "run", .values = "-e --environment --manifest-path -p --platform"},
  {.names = "singularity apptainer", .verb = "exec", .words = 1,
   .values = "-B --bind --env --env-file -H --home -W --workdir --pwd --cwd -S --scratch --overlay "
             "--mount --app --hostname --network --add-caps --apply-cgroups"},
  {.names = "docker podman", .verb = "run", .words = 1,
   .values = "-v --volume -e --env --env-file -w --workdir -u --user --name --gpus --mount -p "
             "--publish --network --net --ipc --shm-size --ulimit -m --memory --cpus --device "
             "--entrypoint --hostname -h --label -l --runtime --cap-add --security-opt --platform"},
  /* what changes how a command runs */
  {.names = "nohup setsid time catchsegv doas unbuffer caffeinate",
   .values = "-f --format -o --output"},
  {.names = "nice", .values = "-n --adjustment"},
  {.names = "ionice", .values = "-c --class -n --classdata"},
  {.names = "timeout", .values = "-s --signal -k --kill-after", .words = 1},
  {.names = "stdbuf", .values = "-i --input -o --output -e --error"},
  {.names = "taskset chrt flock chroot", .words = 1},
  {.names = "numactl", .values = "-C --physcpubind -N --cpunodebind -m --membind -i --interleave "
                                  "-p --preferred"},
  {.names = "sudo", .values = "-u --user -g --group -h --host -p --prompt -C -D --chdir",
   .assigns = true},
  {.names = "systemd-run", .values = "-p --property -u --unit --slice --uid --gid --nice -E "
                                     "--setenv --working-directory -M --machine"},
  {.names = "systemd-inhibit", .values = "--what --who --why --mode"},
  {.names = "xvfb-run", .values = "-n --server-num -s --server-args -f --auth-file -e --error-file "
                                  "-w --wait -p --xauth-protocol"},
  {.names = "strace ltrace", .values = "-o -e -s -p -a -E -P -u -S"},
  {.names = "nsys", .verb = "profile", .values = "-o --output -t --trace -c --capture-range -d "
                                                  "--duration -y --delay -s --sample"},
  {.names = "ncu", .values = "-o --export -k --kernel-name -c --launch-count -s --launch-skip --set "
                             "--section --metrics"},
  {.names = "exec command"},
  {0},
};
/* clang-format on */
