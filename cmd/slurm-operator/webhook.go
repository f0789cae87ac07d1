package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/webhook"
	"github.com/slurm-operator/slurm-operator/internal/webhook/certificate"
)

func webhookCommand() *cobra.Command {
	options := webhook.Options{
		Port:        9443,
		Certificate: certificate.Options{Namespace: os.Getenv("POD_NAMESPACE"), Lifetime: 365 * 24 * time.Hour},
	}
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Reviews objects before they are stored",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := options.StartLogging(command.Context(), command.ErrOrStderr()); err != nil {
				return err
			}
			config, err := connect()
			if err != nil {
				return err
			}
			return webhook.Run(command.Context(), config, options)
		},
	}
	flags := command.Flags()
	options.AddFlags(flags)
	flags.IntVar(&options.Port, "port", options.Port, "the port that API servers connect to")
	flags.StringVar(&options.Certificate.Service, "service", "",
		"the Service under which API servers call, in the namespace of POD_NAMESPACE")
	flags.StringVar(&options.Certificate.Secret, "certificate-secret", "",
		"the Secret in which the webhook keeps its certificate; it must exist, if only empty")
	flags.StringVar(&options.Certificate.Configuration, "configuration", "",
		"the name of both webhook configurations, which the webhook makes trust its certificate")
	flags.DurationVar(&options.Certificate.Lifetime, "certificate-lifetime", options.Certificate.Lifetime,
		"the lifetime of a certificate; it is replaced when a sixth of that is left")
	flags.StringVar(&options.CertificateDirectory, "certificate-directory", "",
		"a directory with tls.crt and tls.key that others renew, such as cert-manager, instead of a "+
			"certificate of our own; they are read again when they change")
	return command
}
